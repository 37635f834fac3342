"""`run diff --format html`: two runs on one time axis."""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from dsdoctor.model.run_record import RunRecord
from dsdoctor.report.html.page import render
from dsdoctor.report.html.run import GIB, events, span_of, strip, timed
from dsdoctor.report.html.svg import STEP, Drawing, Series, chart

Row = Mapping[str, Any]
Points = list[tuple[float, float | None]]


@dataclasses.dataclass(frozen=True)
class SavedRun:
    """One of the two runs.

    Attributes:
        name: name of its folder.
        record: its saved record.
        steps: rows of `steps.jsonl`; their `t` is seconds since the start.
        samples: rows of the samples, flat, with their time since the start as `seconds`.
    """

    name: str
    record: RunRecord
    steps: Sequence[Row]
    samples: Sequence[Row]


def _number(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) else None


def _of_steps(key: str) -> Callable[[SavedRun], Points]:
    return lambda run: [(row["seconds"], _number(row.get(key))) for row in timed(run.steps)]


def _highest(start: str, end: str, scale: float) -> Callable[[SavedRun], Points]:
    """The highest of columns such as `gpu0.used` at each moment."""

    def points(run: SavedRun) -> Points:
        found: Points = []
        for row in run.samples:
            values = [
                number
                for key, value in row.items()
                if key.startswith(start) and key.endswith(f".{end}")
                if (number := _number(value)) is not None
            ]
            found.append((float(row["seconds"]), max(values) / scale if values else None))
        return found

    return points


#: Title, points of a run, whether the axis begins at 0.
CURVES: tuple[tuple[str, Callable[[SavedRun], Points], bool], ...] = (
    ("loss", _of_steps("loss"), False),
    ("step time, s", _of_steps("took"), True),
    ("tokens/s", _of_steps("tokens_per_second"), True),
    ("samples/s", _of_steps("samples_per_second"), True),
    ("GPU memory in use, highest of all GPUs, GiB", _highest("gpu", "used", GIB), True),
    ("GPU utilization, highest of all GPUs, %", _highest("gpu", "util", 1), True),
    ("resident host memory, highest of all ranks, GiB", _highest("rank", "rss", GIB), True),
    ("host memory in use, GiB", _highest("host", "used", GIB), True),
)


def _pair(
    title: str,
    points: tuple[Points, Points],
    span: tuple[float, float],
    *,
    x_unit: str = "s",
    zero: bool = False,
) -> Drawing | None:
    """A curve for each run; None if neither has data."""
    before, after = points
    series = [Series("before", before), Series("after", after, dashed=True)]
    return chart(title, series, span, x_unit=x_unit, zero=zero)


def charts(before: SavedRun, after: SavedRun, span: tuple[float, float]) -> list[Drawing]:
    """All curves over one time axis, each run from its own start."""
    drawn = [
        _pair(title, (points(before), points(after)), span, zero=zero)
        for title, points, zero in CURVES
    ]
    return [one for one in drawn if one is not None]


def by_step(before: SavedRun, after: SavedRun) -> Drawing | None:
    """The loss by step, which compares runs of different speed better than the time axis does."""

    def points(run: SavedRun) -> Points:
        rows = [(_number(row.get("step")), _number(row.get("loss"))) for row in run.steps]
        # a restart repeats steps after its checkpoint: sorted, they are still one curve
        return sorted(
            ((step, loss) for step, loss in rows if step is not None and loss is not None),
            key=lambda row: row[0],
        )

    found = points(before), points(after)
    steps = [step for part in found for step, _ in part]
    if not steps:
        return None
    return _pair("loss by step", found, (min(steps), max(steps)), x_unit=STEP)


def page(
    before: SavedRun,
    after: SavedRun,
    figures: Sequence[tuple[str, str, str, str]],
    changes: Sequence[str],
) -> str:
    """The page.

    Args:
        before: the first run.
        after: the second one.
        figures: name, value of each run, change.
        changes: what differed between their machines, one phrase each.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    runs = (before, after)
    ends = [span_of(one.record, timed(one.steps), one.samples) for one in runs]
    span = (0.0, max(end for _, end in ends))
    happened = [events(one.record) for one in runs]
    return render(
        "run_diff.html.j2",
        title="dsdoctor run diff",
        runs=runs,
        commands=[shlex.join(one.record.command) for one in runs],
        figures=figures,
        changes=changes,
        charts=charts(before, after, span),
        loss=by_step(before, after),
        events=[
            (label, one.name, strip(rows, span, label), rows)
            for label, one, rows in zip(("before", "after"), runs, happened, strict=True)
        ],
    )
