"""`smoke --format html`."""

from __future__ import annotations

import dataclasses
import json
import shlex

from dsdoctor.model.smoke import Phase, SmokeReport
from dsdoctor.report.durations import duration, rounded
from dsdoctor.report.html.page import gib, render
from dsdoctor.report.html.svg import (
    STEP,
    Drawing,
    Frame,
    Part,
    Series,
    Shape,
    chart,
    fitted,
    rect,
    stacked,
    text,
)

STATUS = {"pass": "ok", "fail": "fail", "unknown": "unknown"}
WORDS = {"pass": "passed", "fail": "failed", "unknown": "inconclusive"}
PHASE = {"ok": "ok", "fail": "fail", "stopped": "warn", "not-reached": "skip"}
OUTCOME = {"done": "ok", "failed": "fail", "died": "fail", "hung": "fail", "stopped": "warn"}
ROW = 22.0
#: From this many seconds, a time is in minutes.
MINUTES = 100.0
#: Room next to the strip for the names of the phases and for their times.
NAMES, TIMES = 86.0, 140.0


def took(seconds: float) -> str:
    """The time of a phase.

    >>> took(1.52), took(471.2)
    ('1.5 s', '7 min 51 s')
    """
    return f"{seconds:.1f} s" if seconds < MINUTES else duration(seconds)


def gantt(phases: tuple[Phase, ...]) -> Drawing | None:
    """The phases below each other, each starting where the one before it ends.

    All ranks go through the phases in this order, and a phase's time is that of its slowest rank.
    """
    total = sum(phase.seconds for phase in phases)
    if total <= 0:
        return None
    label = f"{len(phases)} phases in {took(total)}"

    def draw(frame: Frame) -> Drawing:
        long = (frame.width - NAMES - TIMES) / total
        shapes: list[Shape] = []
        x = NAMES
        for number, phase in enumerate(phases):
            y = 4 + ROW * number
            width, words = max(2.0, phase.seconds * long), took(phase.seconds)
            if phase.status == "not-reached":
                width, words = 0.0, "not reached"
            elif phase.status != "ok":
                words = f"{'failed' if phase.status == 'fail' else phase.status} after {words}"
            css = f"f-{PHASE.get(phase.status, 'skip')}"
            shapes.append(text(NAMES - 8, y + 13, phase.name, "", "end"))
            if width:
                shapes.append(rect(x, y + 2, width, ROW - 8, css, title=f"{phase.name}: {words}"))
            shapes.append(text(x + width + 6, y + 13, words, "tick"))
            x += phase.seconds * long
        return Drawing(frame.width, 8 + ROW * len(phases), label, tuple(shapes))

    return fitted(draw)


@dataclasses.dataclass(frozen=True)
class Pair:
    """A measured value next to the expected one.

    Attributes:
        name: what was measured.
        words: both values.
        drawing: the measured value as a bar, the expected one as a dashed line.
    """

    name: str
    words: str
    drawing: Drawing


def memory(report: SmokeReport) -> list[Pair]:
    """Memory predictions next to their measurements."""
    found = []
    for row in report.figures.memory:
        words = (
            f"measured {gib(row.measured_bytes)}, predicted {gib(row.predicted_bytes)} "
            f"({row.ratio:.0%} of the prediction)"
        )
        scale = max(row.measured_bytes, row.predicted_bytes, 1) * 1.05
        drawing = stacked(words, [Part(words, row.measured_bytes, 1)], row.predicted_bytes, scale)
        found.append(Pair(row.what, words, drawing))
    return found


def bandwidth(report: SmokeReport) -> list[Pair]:
    """All-reduce by size, next to the product's reference at the largest size."""
    rows = report.figures.bandwidth
    reference = report.figures.reference_gb_per_s
    top = max([row.gb_per_s for row in rows] + [reference or 0.0, 1e-9]) * 1.05
    found = []
    for number, row in enumerate(rows):
        limit = reference if number == len(rows) - 1 else None
        words = f"{row.gb_per_s:.1f} GB/s"
        if limit is not None:
            words += f", reference {limit:.1f} GB/s"
        drawing = stacked(words, [Part(words, row.gb_per_s, 3)], limit, top)
        found.append(Pair(gib(row.bytes), words, drawing))
    return found


def curves(report: SmokeReport) -> list[Drawing]:
    """Loss, step time and throughput by step."""
    f = report.figures
    times = list(enumerate(f.step_times_ms, start=1))
    # tokens of a step, from the two figures that were computed from it
    tokens = (f.tokens_per_s or 0.0) * (f.step_ms or 0.0)
    rows: list[tuple[str, list[tuple[float, float | None]], bool]] = [
        ("loss", list(enumerate(f.losses, start=1)), False),
        ("step time, ms", [(step, time) for step, time in times], True),
        ("tokens/s", [(step, tokens / time if time else None) for step, time in times], True),
    ]
    span = (1.0, float(max(len(f.losses), len(times), 2)))
    drawn = [
        chart(title, [Series(title, points)], span, x_unit=STEP, zero=zero)
        for title, points, zero in rows
        if len(points) > 1 and (title != "tokens/s" or tokens)
    ]
    return [one for one in drawn if one is not None]


def page(report: SmokeReport) -> str:
    """The page.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    f = report.figures
    figures = [
        ("step time", f.step_ms, "ms, median of the slowest rank"),
        ("fastest step", f.step_ms_low, "ms"),
        ("slowest step", f.step_ms_high, "ms"),
        ("throughput", f.tokens_per_s, "tokens/s, all ranks"),
        ("first loss", f.first_loss, ""),
        ("last loss", f.last_loss, ""),
        ("last loss of one process", f.reference_loss, "same seed"),
        ("slowest rank", f.slowest_rank, ""),
        ("slowest rank against the median", f.slowest_ratio, "times"),
        ("compiling ops", f.build_seconds, "s"),
    ]
    peaks = [max(rank.peak_device_bytes or 0, rank.peak_host_bytes or 0) for rank in report.ranks]
    most = max([*peaks, 1])

    def bar(place: str, size: int | None, color: int) -> tuple[str, Drawing] | None:
        if size is None:
            return None
        words = f"{place} {gib(size)}"
        return gib(size), stacked(words, [Part(words, size, color)], None, most)

    ranks = [
        (rank, bar("GPU", rank.peak_device_bytes, 1), bar("host", rank.peak_host_bytes, 2))
        for rank in report.ranks
    ]
    return render(
        "smoke.html.j2",
        title=f"{WORDS[report.verdict]} · dsdoctor smoke",
        report=report,
        word=WORDS[report.verdict],
        status=STATUS[report.verdict],
        outcome=OUTCOME,
        gantt=gantt(report.phases),
        curves=curves(report),
        figures=[
            (name, f"{rounded(value, 4)} {unit}".strip())
            for name, value, unit in figures
            if value is not None
        ],
        memory=memory(report),
        bandwidth=bandwidth(report),
        ranks=ranks,
        took=took(report.seconds),
        command=shlex.join(report.launch.argv),
        env=sorted(report.launch.env.items()),
        config=json.dumps(report.launch.ds_config, indent=2, ensure_ascii=False),
    )
