"""Memory of accelerators that was nearly full at the moment when a table was printed.

A table does not say whose processes these are, so it is no finding: the job itself may have run.
But a job that starts beside them runs out of memory, and that is worth a sentence.
"""

from __future__ import annotations

from typing import NamedTuple

from dsdoctor.paste.lines import Line
from dsdoctor.paste.statements import Statements

#: Of the memory; drivers and contexts of idle devices use a few percent at most.
NEARLY_FULL = 0.9
#: Devices that are listed; more are counted.
_MOST = 4


class InUse(NamedTuple):
    """The memory of a device.

    Attributes:
        name: of the device (`GPU 0`).
        used: as printed.
        total: as printed.
        unit: of both, as printed.
        line: where it stands.
    """

    name: str
    used: int
    total: int
    unit: str
    line: Line


def notice_full(tool: str, found: list[InUse], into: Statements) -> None:
    """Records the devices of a table whose memory was nearly full."""
    full = [one for one in found if one.total and one.used >= NEARLY_FULL * one.total]
    if not full:
        return
    shown = [
        f"{one.name} ({one.used} of {one.total} {one.unit}, line {one.line.number})"
        for one in full[:_MOST]
    ]
    if len(full) > _MOST:
        shown.append(f"{len(full) - _MOST} more")
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    into.notice(
        f"nearly all memory of {listed} was in use when `{tool}` was run: unless this job used it,"
        " too little is left for the job"
    )
