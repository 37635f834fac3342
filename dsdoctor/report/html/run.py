"""`run show --format html`."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.run_record import Figures, RunRecord
from dsdoctor.report.durations import rounded
from dsdoctor.report.html.page import gib, render
from dsdoctor.report.html.svg import (
    Drawing,
    Frame,
    Series,
    Shape,
    badges,
    chart,
    fitted,
    line,
    text,
    x_axis,
)

GIB = 2**30
Row = Mapping[str, Any]
#: Most curves of ranks or GPUs that can be distinguished; the first ones are drawn.
MOST_CURVES = 16
#: Numbered events; those after them are in the list only.
MOST_EVENTS = 60
#: Events that are drawn into every curve; more would hide it.
MOST_MARKS = 12
#: Kind of an event to the class of its color.
EVENT = {"notice": "f-warn", "end": "f-unknown", "signal": "f-skip"}


def _series(name: str, rows: Sequence[Row], key: str, scale: float = 1.0) -> Series:
    points = []
    for row in rows:
        value = row.get(key)
        number = value if isinstance(value, (int, float)) else None
        points.append((float(row["seconds"]), None if number is None else number / scale))
    return Series(name, points)


def _columns(rows: Sequence[Row], start: str, end: str) -> list[str]:
    """Columns such as `gpu0.used`, in the order of their numbers."""
    names = {
        key for row in rows for key in row if key.startswith(start) and key.endswith(f".{end}")
    }
    return sorted(names, key=lambda name: (len(name), name))[:MOST_CURVES]


def timed(steps: Sequence[Row]) -> list[Row]:
    """Steps with the time of their line as `seconds`, and their duration as `took`."""
    return [
        {**row, "seconds": float(row["t"]), "took": row.get("seconds")}
        for row in steps
        if isinstance(row.get("t"), (int, float))
    ]


def charts(
    record: RunRecord, steps: Sequence[Row], samples: Sequence[Row]
) -> list[tuple[Drawing, list[str]]]:
    """Every curve over the same time axis, with the names of its series."""
    span = span_of(record, steps, samples)
    marks = [(time, EVENT[kind], words) for time, kind, words in events(record)[:MOST_MARKS]]
    found: list[tuple[Drawing | None, list[str]]] = []
    for title, key, rows, zero in (
        ("loss", "loss", steps, False),
        ("step time, s", "took", steps, True),
        ("tokens/s", "tokens_per_second", steps, True),
        ("samples/s", "samples_per_second", steps, True),
    ):
        drawn = chart(title, [_series(key, rows, key)], span, x_unit="s", zero=zero, marks=marks)
        found.append((drawn, []))
    known = record.figures.predicted
    limits = {} if known is None else {"gpu.used": known.gpu_bytes / GIB}
    if known is not None and known.host_bytes is not None and known.ranks:
        limits["rank.rss"] = known.host_bytes / known.ranks / GIB
    for title, start, end, scale in (
        ("GPU memory in use, GiB", "gpu", "used", GIB),
        ("GPU utilization, %", "gpu", "util", 1),
        ("GPU temperature, °C", "gpu", "temp_c", 1),
        ("resident host memory of each rank, GiB", "rank", "rss", GIB),
        ("host memory in use, GiB", "host", "used", GIB),
    ):
        series = [
            _series(name.partition(".")[0], samples, name, scale)
            for name in _columns(samples, start, end)
        ]
        level = limits.get(f"{start}.{end}")
        words = title if level is None else f"{title}; dashed: predicted"
        drawn = chart(words, series, span, x_unit="s", limit=level, zero=True, marks=marks)
        found.append((drawn, [one.name for one in series] if len(series) > 1 else []))
    return [(drawn, names) for drawn, names in found if drawn is not None]


def span_of(record: RunRecord, *tables: Sequence[Row]) -> tuple[float, float]:
    """First and last second of the time axis."""
    ends = [float(row["seconds"]) for rows in tables for row in rows[-1:]]
    return 0.0, max([record.seconds, *ends, *(note.time for note in record.notices), 1.0])


def events(record: RunRecord) -> list[tuple[float, str, str]]:
    """What happened: time, kind, words; the earliest first."""
    rows = [(note.time, "notice", note.text) for note in record.notices]
    rows += [(end.time, "end", f"rank {end.rank} ended") for end in record.rank_ends]
    rows += [(one.time, "signal", f"{one.name} was forwarded to the job") for one in record.signals]
    return sorted(rows)


def strip(
    rows: Sequence[tuple[float, str, str]], span: tuple[float, float], of: str = ""
) -> Drawing | None:
    """The events as numbered points, a row for each kind, on the axis of the curves.

    Args:
        rows: time, kind, words.
        span: of the axis.
        of: names the run if a page shows several.
    """
    if not rows:
        return None
    kinds = [kind for kind in ("notice", "end", "signal") if any(kind == row[1] for row in rows)]
    height = 26 + 26 * len(kinds)
    shown = list(enumerate(rows[:MOST_EVENTS], start=1))
    label = f"{len(rows)} event{'s' if len(rows) > 1 else ''} {of}".rstrip()

    def draw(frame: Frame) -> Drawing:
        shapes: list[Shape] = []
        for place, kind in enumerate(kinds):
            y = 16 + 26 * place
            shapes += [
                text(frame.left - 8, y + 4, kind, "", "end"),
                line(frame.left, y, frame.end, y, "axis"),
            ]
            points = [
                (number, frame.across(time, span), EVENT[kind], words)
                for number, (time, one, words) in shown
                if one == kind
            ]
            shapes += badges(points, y, 18, "on")
        shapes += x_axis(frame, span, "s", height)
        return Drawing(frame.width, height, label, tuple(shapes))

    return fitted(draw)


def memory_rows(figures: Figures) -> list[tuple[str, str]]:
    """Peak memory of each GPU, each rank and the host, next to the prediction of `recommend`."""
    known, gpu, ranks = figures.predicted, "", ""
    if known is not None:
        given = f" with {known.assumed}" if known.assumed else ""
        gpu = f" ({gib(known.gpu_bytes)} predicted{given})"
        if known.host_bytes is not None:
            ranks = f" ({gib(known.host_bytes)} predicted)"
    rows = [
        (f"peak memory of GPU {name}", gib(size) + gpu)
        for name, size in figures.peak_gpu_bytes.items()
    ]
    rows += [
        (f"peak host memory of rank {name}", gib(size))
        for name, size in list(figures.peak_rank_bytes.items())[:MOST_CURVES]
    ]
    if figures.peak_ranks_bytes is not None:
        rows.append(("peak host memory of all ranks", gib(figures.peak_ranks_bytes) + ranks))
    if figures.peak_host_bytes is not None:
        rows.append(("peak host memory, all programs", gib(figures.peak_host_bytes)))
    return rows


def page(record: RunRecord, steps: Sequence[Row], samples: Sequence[Row], status: str) -> str:
    """The page.

    Args:
        record: the saved record of the run.
        steps: rows of `steps.jsonl`; their `t` is seconds since the start.
        samples: rows of the samples, flat, with their time since the start as `seconds`.
        status: how the run ended, in words.

    Raises:
        UsageError: the extra `html` is not installed.
    """
    found = None
    if record.diagnosis is not None:
        try:
            found = msgspec.convert(record.diagnosis, Diagnosis)
        except msgspec.ValidationError:
            found = None  # of another version; its summary is still shown
    moments = timed(steps)
    f = record.figures
    figures = [
        ("last step", f.steps, ""),
        ("step time", f.step_seconds, "s, median"),
        ("loss", f.loss, ""),
        ("throughput", f.tokens_per_second, "tokens/s"),
        ("throughput", f.samples_per_second, "samples/s"),
    ]
    rows = [
        (name, f"{rounded(value, 5)} {unit}".strip())
        for name, value, unit in figures
        if value is not None
    ]
    rows += memory_rows(f)
    rows += [(f"GPU {gpu} throttled", f"{took:.0f} s") for gpu, took in f.throttled_seconds.items()]
    happened = events(record)
    return render(
        "run.html.j2",
        title=f"{record.id} · dsdoctor run",
        record=record,
        command=shlex.join(record.command),
        word=status,
        status="unknown" if record.status is None else "ok" if record.status == 0 else "fail",
        figures=rows,
        charts=charts(record, moments, samples),
        strip=strip(happened, span_of(record, moments, samples)),
        events=happened,
        most_marks=MOST_MARKS,
        diagnosis=found,
        summary="" if record.diagnosis is None else str(record.diagnosis.get("summary", "")),
    )
