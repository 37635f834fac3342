"""Causes and lines as a diagnosis shows them."""

from __future__ import annotations

import collections
from collections.abc import Sequence

from dsdoctor.logs.candidates import Candidate, Choice
from dsdoctor.logs.errors import Error
from dsdoctor.logs.presentable import presentable
from dsdoctor.logs.ranks import disagreement
from dsdoctor.model.condition import Level
from dsdoctor.model.diagnosis import Cause, FirstError, Line

MOST_CAUSES = 3
#: A second cause is shown when its level is this close to that of the first.
WORTH_SHOWING = 2
#: How often an answer of each level was right in first runs on cases drawn blind, at least; a
#: hint was in 3 of 8: docs/accuracy.md.
CONFIDENCE = {
    Level.CERTAIN: 0.95,
    Level.STRONG: 0.9,
    Level.LIKELY: 0.8,
    Level.WEAK: 0.7,
    Level.HINT: 0.4,
}


def causes_of(choice: Choice, names: Sequence[str]) -> tuple[Cause, ...]:
    """The conditions that were chosen, the most likely first."""
    ranked = [one for one in choice.ranked if one.known is not None]
    if not ranked:
        return ()
    top = ranked[0].level
    shown = [c for c in ranked if c.level >= top - WORTH_SHOWING][:MOST_CAUSES]
    return tuple(
        _cause(
            candidate,
            place,
            names,
            tuple(sorted(v for v, by in choice.masked.items() if by == candidate.name)),
        )
        for place, candidate in enumerate(shown)
    )


def _cause(candidate: Candidate, place: int, names: Sequence[str], masks: tuple[str, ...]) -> Cause:
    hit = candidate.hits[0]
    message = hit.known.title
    if hit.known.signature.message:
        values = collections.defaultdict(
            lambda: "?", {k: presentable(v) for k, v in hit.groups.items()}
        )
        message = hit.known.signature.message.format_map(values)
    if told := disagreement(candidate.hits):
        message += f"; the ranks disagree: {presentable(told)}"
    seen: set[str] = set()
    lines: list[Line] = []
    for one in candidate.hits:
        if one.text in seen or len(lines) == MOST_CAUSES:
            continue
        seen.add(one.text)
        lines.append(line_of(one.source, one.line, one.text, one.rank, names))
    certainty = CONFIDENCE[candidate.level] * (1.0, 0.6, 0.4)[min(place, 2)]
    return Cause(
        condition=hit.known.condition,
        title=hit.known.title,
        confidence=round(certainty, 2),
        message=message,
        hint=hit.known.signature.hint or hit.known.hint,
        fixes=tuple(hit.known.fixes),
        evidence=tuple(lines),
        masks=masks,
    )


def line_of(source: int, number: int, text: str, rank: int | None, names: Sequence[str]) -> Line:
    """A line of a log, safe to print."""
    return Line(file=presentable(names[source]), line=number, text=presentable(text), rank=rank)


def first_error_of(error: Error, names: Sequence[str]) -> FirstError:
    """An exception, safe to print."""
    return FirstError(
        rank=error.rank,
        type=presentable(error.type),
        message=presentable(error.message),
        file=presentable(error.file) or presentable(names[error.source]),
        line=error.file_line or error.line,
        log=line_of(error.source, error.line, error.text, error.rank, names),
    )
