"""The configuration file: thresholds and deselected checks.

Read from `/etc/dsdoctor/config.toml`, then from the user's own file, which takes precedence::

    ignore = ["several-toolkits"]

    [limits.shm-too-small]
    min_mib = 8192

    [hook]
    budget = 4

Root reads only files that no other account could have written (`safe_path`), and reports those that
it ignores. A gate (`dsdoctor hook`) reads them with `for_hook`, which never raises: a mistake in a
file must neither stop the gate nor open it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec

from dsdoctor import files, reading
from dsdoctor.errors import UsageError
from dsdoctor.packs.registry import Registry
from dsdoctor.safe_path import is_root, why_untrusted

SYSTEM_FILE = Path("/etc/dsdoctor/config.toml")


class HookSettings(msgspec.Struct, kw_only=True):
    """The table `[hook]`: defaults of the hooks.

    Attributes:
        budget: seconds that the script of a hook may take in total.
        max_age: seconds for which other hooks may reuse a verdict on the node.
        fail_closed: an inconclusive check blocks too.
        dry_run: report only, block nothing.
        textfile: file for Prometheus' textfile collector, an absolute path.
        gpus: GPUs to judge: indices or UUIDs, `all`, `none`.
        ignore: checks to leave out.
    """

    budget: Annotated[float, msgspec.Meta(ge=1, le=600)]
    max_age: Annotated[float, msgspec.Meta(ge=0, le=86400)]
    fail_closed: bool
    dry_run: bool
    textfile: Annotated[str, msgspec.Meta(pattern="^/")]
    gpus: Annotated[str, msgspec.Meta(min_length=1)]
    ignore: list[str]


#: What a value of `[hook]` must be, for messages.
_HOOK_EXPECTED = {
    "budget": "seconds, 1 to 600",
    "max_age": "seconds, 0 to 86400",
    "fail_closed": "true or false",
    "dry_run": "true or false",
    "textfile": "an absolute path",
    "gpus": '`"all"`, `"none"`, or indices or UUIDs such as `"0,1"`',
    "ignore": 'a list such as `["memlock-low"]`',
}


class Settings(msgspec.Struct, kw_only=True, forbid_unknown_fields=True):
    """What the files may set.

    Attributes:
        ignore: checks to leave out: families, ids, names.
        limits: condition name to thresholds.
        hook: defaults of the hooks, not validated; `hook_values` does that.
    """

    ignore: list[str] = []
    limits: dict[str, dict[str, float]] = {}
    hook: dict[str, Any] = {}


def load(path: Path | None = None) -> Settings:
    """Reads the configuration.

    Args:
        path: a file to read instead of the usual ones; None = `DSDOCTOR_CONFIG`, if it is set.

    Raises:
        UsageError: a file is not TOML, or sets an unknown key or a value of the wrong type.
    """
    given = os.environ.get("DSDOCTOR_CONFIG")
    if path is None and given:
        path = Path(given)
        if not path.is_file():
            raise UsageError(
                f"`DSDOCTOR_CONFIG` is `{given}`, which is not a file; correct it or unset it"
            )
    user = files.user_config_folder()
    usual = [SYSTEM_FILE, *([] if user is None else [user / "config.toml"])]
    merged = Settings()
    for file in [path] if path else usual:
        reason = distrusted(file)
        if reason:
            sys.stderr.write(f"dsdoctor: `{file}` is ignored: {reason}\n")
            continue
        found = _read(file)
        if found is not None:
            merged = Settings(
                ignore=[*merged.ignore, *found.ignore],
                limits={**merged.limits, **found.limits},
                hook={**merged.hook, **found.hook},
            )
    return merged


def distrusted(file: Path) -> str:
    """Why root does not trust a file; empty if it does, or if this process is not root's."""
    return why_untrusted(file) if is_root() and os.path.lexists(file) else ""


def nearest(name: str, names: Iterable[str]) -> str:
    """A suggestion for a misspelled name, as the end of a sentence; empty if none is similar."""
    import difflib  # noqa: PLC0415  # only for a misspelling

    near = difflib.get_close_matches(name, list(names), n=1)
    return f"; did you mean `{near[0]}`?" if near else ""


def hook_values(table: Mapping[str, object]) -> tuple[dict[str, Any], list[str]]:
    """The valid values of `[hook]`, and a line for each that is not valid.

    >>> hook_values({"budget": 3, "dry_run": "false"})
    ({'budget': 3.0}, ['`dry_run = "false"` in `[hook]` is ignored; expected true or false'])
    >>> hook_values({"fail_close": True})[1]
    ['`fail_close` in `[hook]` is not known; did you mean `fail_closed`?']
    """
    fields = {field.name: field.type for field in msgspec.structs.fields(HookSettings)}
    values: dict[str, Any] = {}
    problems: list[str] = []
    for name, value in table.items():
        if name not in fields:
            problems.append(f"`{name}` in `[hook]` is not known{nearest(name, fields)}")
            continue
        try:
            values[name] = msgspec.convert(value, fields[name])
        except msgspec.ValidationError:
            import json  # noqa: PLC0415  # only for a mistake

            shown = json.dumps(value, default=str, ensure_ascii=False)[:60]
            expected = _HOOK_EXPECTED[name]
            problems.append(f"`{name} = {shown}` in `[hook]` is ignored; expected {expected}")
    return values, problems


def _toml(content: bytes) -> dict[str, Any]:
    """Parses TOML.

    Raises:
        ValueError: it is not TOML, or not UTF-8.
        RecursionError: it is nested too deeply.
    """
    if sys.version_info >= (3, 11):  # most machines have no such file, and need not load a parser
        import tomllib  # noqa: PLC0415  # only with a file
    else:
        import tomli as tomllib  # noqa: PLC0415  # as above
    found: dict[str, Any] = tomllib.loads(content.decode("utf-8"))
    return found


def for_hook(file: Path) -> tuple[Settings, list[str]]:
    """The valid settings of a file, and a line for each mistake in it. Raises nothing."""
    try:
        data = _toml(files.read(file))
    except OSError as error:
        return Settings(), [f"`{file}` cannot be read ({error.strerror}) and is ignored"]
    except (ValueError, RecursionError) as error:
        return Settings(), [f"`{file}` is not TOML and is ignored: {error}"]
    found = Settings()
    tables = ("ignore", "limits", "hook")
    problems = [f"`{n}` is not known{nearest(n, tables)}" for n in data if n not in tables]
    try:
        found.ignore = msgspec.convert(data.get("ignore", []), list[str])
    except msgspec.ValidationError:
        problems.append(f"`ignore` is ignored; expected {_HOOK_EXPECTED['ignore']}")
    limits = data.get("limits", {})
    for name, table in limits.items() if isinstance(limits, dict) else ():
        try:
            found.limits[name] = msgspec.convert(table, dict[str, float])
        except msgspec.ValidationError:
            problems.append(f"`[limits.{name}]` is ignored; expected names of limits and numbers")
    if not isinstance(limits, dict):
        problems.append("`limits` is ignored; expected tables such as `[limits.shm-too-small]`")
    hook = data.get("hook", {})
    if isinstance(hook, dict):
        found.hook, wrong = hook_values(hook)
        problems += wrong
    else:
        problems.append("`hook` is ignored; expected a table `[hook]`")
    return found, problems


#: How a word of `ignore` is quoted.
OF_CONFIGURATION = '`ignore = ["{}"]` of the configuration'


def without_leftovers(
    found: Settings, registry: Registry, ignored: str = OF_CONFIGURATION
) -> tuple[Settings, tuple[str, ...]]:
    """The settings without those of conditions that do not exist, and a line for each of them.

    A pack that was removed leaves its tables behind: they must not stop a command.

    Args:
        found: the settings.
        registry: what exists.
        ignored: how a word of `ignore` is quoted, which a command may have taken from an option.
    """
    names = [unit.condition.name for unit in registry]
    warnings: list[str] = []

    def report(what: str, name: str) -> None:
        end = f"matches no condition and is ignored{nearest(name, names)}"
        warnings.append(f"{what} {end}")

    limits: dict[str, dict[str, float]] = {}
    for name, values in found.limits.items():
        unit = registry.find(name)
        if unit is None:
            report(f"`[limits.{name}]` of the configuration", name)
        else:
            limits[unit.condition.name] = values
    ignore: list[str] = []
    for word in found.ignore:
        if registry.matches(word):
            ignore.append(word)
        else:
            report(ignored.format(word), word)
    kept = Settings(ignore=ignore, limits=limits, hook=found.hook)
    return kept, tuple(warnings)


def _read(file: Path) -> Settings | None:
    try:
        data = _toml(reading.read_file(file))
    except OSError:
        return None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{file}` is not TOML: {error}") from None
    try:
        return msgspec.convert(data, Settings)
    except msgspec.ValidationError as error:
        raise UsageError(
            f"`{file}`: {error}; expected `ignore = [...]` and `[limits.CONDITION]` tables"
        ) from None
