"""The configuration file: thresholds and deselected checks.

Read from `/etc/dsdoctor/config.toml`, then the user's own, which wins::

    ignore = ["several-toolkits"]

    [limits.shm-too-small]
    min_mib = 8192
"""

from __future__ import annotations

import difflib
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import platformdirs

from dsdoctor.errors import UsageError
from dsdoctor.registry import Registry

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

SYSTEM_FILE = Path("/etc/dsdoctor/config.toml")


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the files may say.

    Attributes:
        ignore: checks to leave out: families, ids, names.
        limits: condition name to thresholds.
        hook: defaults of the hooks (`budget`, `max_age`, `fail_closed`, `dry_run`, `textfile`,
            `gpus`, `ignore`).
    """

    ignore: list[str] = []
    limits: dict[str, dict[str, float]] = {}
    hook: dict[str, Any] = {}


def load(path: Path | None = None) -> Settings:
    """Reads the configuration.

    Args:
        path: a file to read instead of the usual ones (`DSDOCTOR_CONFIG`).

    Raises:
        UsageError: a file is not TOML, or says what is not known.
    """
    given = os.environ.get("DSDOCTOR_CONFIG")
    if path is None and given:
        path = Path(given)
        if not path.is_file():
            raise UsageError(f"`DSDOCTOR_CONFIG` names `{given}`, which is not a file")
    user = Path(platformdirs.user_config_dir("dsdoctor")) / "config.toml"
    merged = Settings()
    for file in [path] if path else [SYSTEM_FILE, user]:
        found = _read(file)
        if found is not None:
            merged = Settings(
                ignore=[*merged.ignore, *found.ignore],
                limits={**merged.limits, **found.limits},
                hook={**merged.hook, **found.hook},
            )
    return merged


def without_leftovers(found: Settings, registry: Registry) -> tuple[Settings, tuple[str, ...]]:
    """The settings without what names a condition that does not exist, and a line for each.

    A pack that was removed leaves its tables behind: they stop nothing.
    """
    names = [unit.condition.name for unit in registry]
    warnings: list[str] = []

    def report(what: str, name: str) -> None:
        near = difflib.get_close_matches(name, names, n=1)
        nearest = f"; the nearest is `{near[0]}`" if near else ""
        warnings.append(f"{what} of the configuration names no condition and is ignored{nearest}")

    limits: dict[str, dict[str, float]] = {}
    for name, values in found.limits.items():
        unit = registry.find(name)
        if unit is None:
            report(f"`[limits.{name}]`", name)
        else:
            limits[unit.condition.name] = values
    ignore: list[str] = []
    for word in found.ignore:
        if registry.matches(word):
            ignore.append(word)
        else:
            report(f'`ignore = ["{word}"]`', word)
    kept = Settings(ignore=ignore, limits=limits, hook=found.hook)
    return kept, tuple(warnings)


def _read(file: Path) -> Settings | None:
    try:
        data: dict[str, Any] = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError:
        return None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"`{file}` is not TOML: {error}") from None
    try:
        return msgspec.convert(data, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"`{file}`: {error}; expected `ignore = [...]` and `[limits.CONDITION]` tables"
        ) from None
