"""`diagnose --format html`."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Mapping, Sequence

from dsdoctor.model.diagnosis import Diagnosis, Line, Outcome
from dsdoctor.report.diagnosis import beyond_the_cause
from dsdoctor.report.html.page import render
from dsdoctor.report.html.svg import WIDE, Drawing, Frame, Shape, arrow, circle, fitted, line, text
from dsdoctor.report.text import shown as troubles

#: Most points and rows that can be distinguished.
MOST_EVENTS, MOST_RANKS, MOST_NARROW = 28, 16, 10
#: Of more ranks with the same line, `logs` keeps one more than this (`logs.ranks`).
MOST_ALIKE = 4
LEFT, ROW, RADIUS = 98.0, 36.0, 9.0
WORDS = {
    Outcome.CAUSE: "cause found",
    Outcome.USER_CODE: "the script's own error",
    Outcome.UNRECOGNISED: "not recognized",
    Outcome.CLEAN: "no failure",
}
STATUS = {
    Outcome.CAUSE: "fail",
    Outcome.USER_CODE: "warn",
    Outcome.UNRECOGNISED: "unknown",
    Outcome.CLEAN: "ok",
}
#: Of an error that matches no condition but is in the error index, by kind of label.
EXPLAINED = {"refusal": "refused", "internal": "internal error"}
NOW = {"confirmed": "fail", "refuted": "ok", "unknown": "unknown"}
Context = Mapping[tuple[str, int], Sequence[tuple[int, str]]]


@dataclasses.dataclass(frozen=True)
class Event:
    """A point of the graph.

    Attributes:
        number: in the graph, from 1.
        name: condition or exception.
        kind: `cause`, `first error` or `consequence`.
        line: where it is in the log.
    """

    number: int
    name: str
    kind: str
    line: Line


def events(diagnosis: Diagnosis) -> list[Event]:
    """The evidence of the first cause, or the first error, then its consequences, in log order."""
    error = diagnosis.first_error
    if diagnosis.causes:
        cause = diagnosis.causes[0]
        rows = [("cause", cause.condition, one) for one in cause.evidence]
    elif error is not None:
        rows = [("first error", error.type, error.log)]
    else:
        return []
    seen = {(one.file, one.line) for _, _, one in rows}
    rows += [
        ("consequence", one.name, one.line)
        for one in diagnosis.consequences
        if (one.line.file, one.line.line) not in seen
    ]
    if len({one.file for _, _, one in rows}) == 1:  # line numbers of one log are an order
        rows.sort(key=lambda row: (row[2].line, row[0]))
    return [
        Event(number, name, kind, one)
        for number, (kind, name, one) in enumerate(rows[:MOST_EVENTS], start=1)
    ]


def graph(shown: Sequence[Event]) -> Drawing | None:
    """Ranks as rows, the order of the log from left to right, arrows from the cause."""
    if len(shown) < 2:  # noqa: PLR2004  # one point needs no graph
        return None
    ranks = sorted({e.line.rank for e in shown}, key=lambda r: (r is not None, r))[:MOST_RANKS]
    height = 22 + ROW * len(ranks)
    label = f"{len(shown)} lines on {len(ranks)} ranks, in the order of the log"
    first = next((e for e in shown if e.kind != "consequence"), None)

    def draw(frame: Frame) -> Drawing:
        step = (frame.width - LEFT - 30) / max(1, len(shown) - 1)
        at = {
            e.number: (LEFT + 12 + step * (e.number - 1), 22 + ROW * ranks.index(e.line.rank))
            for e in shown
            if e.line.rank in ranks
        }
        shapes: list[Shape] = []
        for place, rank in enumerate(ranks):
            y = 22 + ROW * place
            words = "launcher" if rank is None else f"rank {rank}"
            shapes += [text(0, y + 4, words), line(LEFT - 6, y, frame.width, y, "axis")]
        for event in shown:
            if event.kind == "consequence" and first and {event.number, first.number} <= at.keys():
                shapes += _arrow_between(at[first.number], at[event.number])
        for event in shown:
            if event.number in at:
                shapes += _point(event, *at[event.number])
        return Drawing(frame.width, height, label, tuple(shapes))

    # more points than this would cover each other on a phone; there the picture is scrolled
    return fitted(draw) if len(shown) <= MOST_NARROW else draw(WIDE)


def _arrow_between(start: tuple[float, float], end: tuple[float, float]) -> tuple[Shape, ...]:
    """An arrow from edge to edge of two points.

    It runs up or down next to no other point, as no two have the same place in the log, and then
    along the row of its rank. A straight one could cross a point and seem to come from there.
    """
    edge = RADIUS + 2
    (x1, y1), (x2, y2) = start, end
    before = math.copysign(edge, x2 - x1)
    if y1 == y2:
        x1 += before
    else:
        y1 += math.copysign(edge, y2 - y1)
    return arrow(x1, y1, x2 - before, y2)


def _point(event: Event, x: float, y: float) -> tuple[Shape, Shape]:
    css = "f-warn" if event.kind == "consequence" else "f-fail"
    title = f"{event.kind}: {event.name}, {event.line.file}:{event.line.line}"
    return (
        circle(x, y, RADIUS + 2, css, title=title),
        text(x, y + 4, str(event.number), "on", "middle"),
    )


def places(diagnosis: Diagnosis) -> list[tuple[str, int]]:
    """Lines whose neighbors the page quotes."""
    rows = [one for cause in diagnosis.causes for one in cause.evidence]
    rows += diagnosis.considered
    rows += [one.line for one in diagnosis.attempts if one.line is not None]
    rows += [one.evidence for one in diagnosis.expectations if one.evidence is not None]
    if diagnosis.first_error is not None:
        rows.append(diagnosis.first_error.log)
    return list(dict.fromkeys((one.file, one.line) for one in rows))


def page(diagnosis: Diagnosis, context: Context) -> str:
    """The page.

    Args:
        diagnosis: the diagnosis.
        context: numbered lines around those of `places`, if they could be read again.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    shown = events(diagnosis)
    environment = beyond_the_cause(diagnosis)
    word = WORDS[diagnosis.outcome]
    if diagnosis.explained is not None and diagnosis.outcome is Outcome.UNRECOGNISED:
        word = EXPLAINED[diagnosis.explained.kind]
    top = diagnosis.causes[0].condition if diagnosis.causes else word
    return render(
        "diagnosis.html.j2",
        title=f"{top} · dsdoctor diagnose",
        d=diagnosis,
        word=word,
        status=STATUS[diagnosis.outcome],
        now=NOW,
        events=shown,
        alike=sorted(
            name
            for name, count in Counter(event.name for event in shown).items()
            if count > MOST_ALIKE
        ),
        hidden=len(diagnosis.consequences) + len(shown[:1]) - len(shown),
        graph=graph(shown),
        one_log=len({event.line.file for event in shown}) <= 1,
        context=context,
        environment=environment,
        findings=[] if environment is None else list(troubles(environment, 0)),
        told=diagnosis.first_error is not None
        and diagnosis.first_error.log
        in [*diagnosis.considered, *(one for c in diagnosis.causes for one in c.evidence)],
    )
