"""What `run diff --format json` prints: two runs and what differs between them."""

from __future__ import annotations

import msgspec

SCHEMA = "dsdoctor/run-diff"
VERSION = 1


class ComparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """One of the two runs.

    Attributes:
        id: name of its folder.
        host: host name.
        command: the command as typed, secrets masked.
        started: ISO 8601, UTC.
        status: exit status of the command; negative = signal; None while it runs.
        ending: how it ended, as `run list` shows it.
    """

    id: str
    host: str
    command: tuple[str, ...]
    started: str
    status: int | None
    ending: str


class FigureChange(msgspec.Struct, frozen=True, kw_only=True):
    """One figure of both runs.

    Attributes:
        name: such as `step time`.
        unit: `s`, `GiB` or "" for a count.
        before: of the first run; None = nothing reported it.
        after: of the second run.
        change_percent: change against the first run; None if a value is missing or 0, or if the
            difference is too small to count.
    """

    name: str
    unit: str
    before: float | None
    after: float | None
    change_percent: float | None


class RunDiff(msgspec.Struct, frozen=True, kw_only=True):
    """The document.

    Attributes:
        schema: SCHEMA.
        version: moves when a key is removed.
        before: the first run.
        after: the second run.
        figures: what at least one of them has a value for.
        changes: what differs between their machines, environments and configs, one phrase each.
    """

    schema: str = SCHEMA
    version: int = VERSION
    before: ComparedRun
    after: ComparedRun
    figures: list[FigureChange] = []
    changes: list[str] = []
