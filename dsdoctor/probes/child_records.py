"""From the records of a child in the examined environment to facts, or to why there are none."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from dsdoctor.model.facts.base import Fact, Missing, Why
from dsdoctor.process import Result

Records = Sequence[Mapping[str, Any]]
#: Windows status codes of a process that crashed begin here.
_WINDOWS_CRASH = 0xC0000000

FactType = TypeVar("FactType", bound=Fact)


def values_of(records: Records) -> dict[str, Any]:
    """The values of the facts in the records, by name."""
    return {
        record["fact"]: record["value"]
        for record in records
        if isinstance(record.get("fact"), str) and "value" in record
    }


def why_silent(records: Records, result: Result, part: str) -> Missing:
    """Why a child left out a part."""
    for record in records:
        if record.get("error") == part:
            return Missing(why=Why.BROKEN, detail=f"{part} could not be read: {record.get('text')}")
    python = result.argv[0] if result.argv else "python"
    if result.timed_out:
        detail = f"`{python}` did not list its packages within {result.seconds:.0f} s"
        return Missing(why=Why.TIMEOUT, detail=detail)
    how = bad_ending(result) or "exit status 0"
    said = f": {result.error_text}" if result.stderr.strip() else ""
    return Missing(
        why=Why.BROKEN, detail=f"`{python}` ended with {how} before it reported {part}{said}"
    )


def fact_from(kind: type[FactType], value: Mapping[str, Any]) -> FactType | Missing:
    """A fact from its JSON value; Missing if the value does not fit."""
    try:
        return msgspec.convert(dict(value), kind)
    except msgspec.ValidationError as error:
        return Missing(why=Why.BROKEN, detail=f"{kind.key()} could not be understood: {error}")


def signal_name(number: int) -> str:
    """`SIGKILL` for 9; `signal N` for a number without a name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def bad_ending(result: Result) -> str | None:
    """How a failed child ended, in words."""
    status = result.returncode
    if status is None or status == 0:
        return None
    if status < 0:
        return f"signal {-status} ({signal_name(-status)})"
    if os.name == "nt" and status >= _WINDOWS_CRASH:
        return f"exception 0x{status:08X}"
    return f"exit status {status}"
