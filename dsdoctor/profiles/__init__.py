"""Requirements profiles: loads bundled ones by name and others from files."""

from __future__ import annotations

import difflib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

from dsdoctor import reading
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.run import Floors

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

BUNDLED = Path(__file__).parent


def _number(value: Any) -> float | None:
    good = isinstance(value, int | float) and not isinstance(value, bool) and value >= 0
    return float(value) if good else None


def _count(value: Any) -> int | None:
    good = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return value if good else None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value.strip() else None


def _version(value: Any) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        Version(value)
    except InvalidVersion:
        return None
    return value


def _capability(value: Any) -> str | None:
    return value if isinstance(value, str) and re.fullmatch(r"\d+\.\d", value) else None


_NUMBER = (_number, "a number of 0 or more")
_COUNT = (_count, "a whole number of 0 or more")
_TEXT = (_text, "a string")
_VERSION = (_version, 'a version as a string (`"2.1"`)')
_CAPABILITY = (_capability, 'a compute capability as a string (`"8.0"`)')

Reader = tuple[Callable[[Any], Any], str]
#: The schema of a profile: table, key, field of Floors, and how a value is read.
SCHEMA: dict[str, dict[str, tuple[str, Reader]]] = {
    "profile": {"title": ("", _TEXT)},
    "gpu": {
        "count": ("gpus", _COUNT),
        "memory_gib": ("gpu_memory_gib", _NUMBER),
        "compute_capability": ("compute_capability", _CAPABILITY),
    },
    "host": {
        "cpu_cores": ("cpu_cores", _COUNT),
        "ram_gib": ("ram_gib", _NUMBER),
        "disk_gib": ("disk_gib", _NUMBER),
        "disk_path": ("disk_path", _TEXT),
    },
    "versions": {
        "python": ("python", _VERSION),
        "torch": ("torch", _VERSION),
        "deepspeed": ("deepspeed", _VERSION),
        "cuda": ("cuda", _VERSION),
        "driver": ("driver", _VERSION),
    },
    "packages": {},
}


def bundled() -> list[str]:
    """Names of the profiles that come with dsdoctor."""
    return sorted(path.stem for path in BUNDLED.glob("*.toml"))


def load(text: str) -> Floors:
    """A bundled profile by its name, or a profile from a file.

    Raises:
        UsageError: neither exists, or it is not a profile.
    """
    path = BUNDLED / f"{text}.toml"
    if text not in bundled():
        path = Path(text)
    if not path.is_file():
        near = difflib.get_close_matches(text, bundled(), n=1)
        advice = (
            f"did you mean `{near[0]}`?" if near else f"bundled profiles: {', '.join(bundled())}"
        )
        raise UsageError(f"`--profile {text}` is neither a bundled profile nor a file; {advice}")
    try:
        content = reading.read_file(path).decode("utf-8")
    except (OSError, UnicodeDecodeError, DecodeError) as error:
        words = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else reading.why(error)
        raise UsageError(f"`--profile {text}` cannot be read: {words}") from None
    return parse(content, text)


def line_of(content: str, table: str, key: str | None = None) -> int | None:
    r"""Line of a table's header, or of a key in it; None = not found.

    >>> line_of("[gpu]\ncount = 2\n[host]\ncount = 3\n", "host", "count")
    4
    """
    here = None
    for number, line in enumerate(content.splitlines(), 1):
        head = re.match(r"\s*\[\s*([\w.-]+)\s*\]", line)
        if head:
            here = head[1]
            if key is None and here == table:
                return number
        elif key is not None:
            name = re.match(r"\s*[\"']?([\w.-]+)[\"']?\s*=", line)
            if name and ((here == table and name[1] == key) or (not here and name[1] == table)):
                return number
    return None


def _error_at(origin: str, content: str, place: tuple[str, str | None], message: str) -> UsageError:
    table, key = place
    line = line_of(content, table, key) or line_of(content, table) or line_of(content, table, table)
    return UsageError(f"`--profile {origin}`{f' line {line}' if line else ''}: {message}")


def parse(content: str, origin: str) -> Floors:
    """A profile from its text.

    Raises:
        UsageError: it is not TOML, a table or key is unknown, or a value has the wrong type.
    """
    try:
        tables = tomllib.loads(content)
    except tomllib.TOMLDecodeError as error:
        words = str(error)
        found = re.search(r"\(at line (\d+)", words)
        line = f" line {found[1]}" if found else ""
        words = re.sub(r" \(at .*\)$", "", words)
        raise UsageError(f"`--profile {origin}`{line}: not valid TOML: {words}") from None
    fields: dict[str, Any] = {}
    for table, values in tables.items():
        if table not in SCHEMA:
            raise _error_at(origin, content, (table, None), _unknown("table", table, list(SCHEMA)))
        if not isinstance(values, Mapping):
            raise _error_at(
                origin, content, (table, None), f"`{table}` is not a table; expected `[{table}]`"
            )
        for key, value in values.items():
            if table == "packages":
                wanted = _VERSION[0](value)
                if wanted is None:
                    message = f"`{key}` is `{value}`; expected {_VERSION[1]}"
                    raise _error_at(origin, content, (table, key), message)
                fields.setdefault("packages", {})[key.lower().replace("_", "-")] = wanted
                continue
            if key not in SCHEMA[table]:
                message = _unknown("key", key, list(SCHEMA[table]))
                raise _error_at(origin, content, (table, key), message)
            field, (read, kind) = SCHEMA[table][key]
            wanted = read(value)
            if wanted is None:
                message = f"`{key}` is `{value}`; expected {kind}"
                raise _error_at(origin, content, (table, key), message)
            if field:
                fields[field] = wanted
    if not fields:
        tables_known = ", ".join(f"[{name}]" for name in SCHEMA)
        raise UsageError(f"`--profile {origin}` is empty; expected keys in {tables_known}")
    return Floors(name=origin, **fields)


def _unknown(what: str, name: str, known: list[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    advice = f"did you mean `{near[0]}`?" if near else f"expected one of {', '.join(known)}"
    return f"unknown {what} `{name}`; {advice}"
