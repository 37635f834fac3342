"""Describes the evidence that decided between candidates."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs.candidates import Candidate
from dsdoctor.logs.hits import Failure
from dsdoctor.model.condition import Level


def why_reported(failure: Failure) -> str:
    """The report of torchrun decided."""
    return f"torchrun reports rank {failure.rank} as the first failure (exit code {failure.code})"


def why_before(first: Candidate, echoes: Sequence[Candidate]) -> str:
    """What shows that a failure came before the echoes that follow from it."""
    if not echoes:
        return ""
    item = first.hits[0] if first.hits else first.error
    stamps = sorted(hit.when for one in echoes for hit in one.hits if hit.when)
    rank = f"rank {first.rank} " if first.rank is not None else ""
    dated = item is not None and item.when and not item.undated  # else it may be much later
    if item is not None and dated and stamps and item.when < stamps[0]:
        return f"{rank}failed at {item.when}, before the lines that follow from it ({stamps[0]})"
    names = ", ".join(sorted(one.name for one in echoes))
    return f"{names} follow{'s' if len(echoes) == 1 else ''} from the death of a rank"


def why_between(first: Candidate, second: Candidate, band: Level) -> str:
    """What shows that the first of two candidates came first."""
    if min(first.level, band) != min(second.level, band):
        return f"its message is more certain than that of {second.name}"
    if first.first[1] and second.first[1] and first.first[1] != second.first[1]:
        times = _time_of(first), _time_of(second)
        return f"by time: {times[0]}, {second.name} {times[1]}"
    return f"it comes before {second.name} in the log"


def _time_of(candidate: Candidate) -> str:
    """The time of a candidate; a line without a time stamp came after the last stamp above it."""
    item = candidate.hits[0] if candidate.hits else candidate.error
    word = "after" if item is not None and item.undated else "at"
    return f"{word} {candidate.first[1]}"
