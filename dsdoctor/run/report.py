"""Stored runs as text: the list, one run, two runs side by side."""

from __future__ import annotations

import dataclasses
import datetime as dt
import math
import shlex
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.machines import known_good
from dsdoctor.model import decode
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from dsdoctor.model.plain import shortened
from dsdoctor.model.run_diff import ComparedRun, FigureChange, RunDiff
from dsdoctor.model.run_record import Figures, RunRecord
from dsdoctor.model.snapshot import from_json
from dsdoctor.model.units import GIB, in_words
from dsdoctor.report.durations import duration, rounded
from dsdoctor.report.text import clean
from dsdoctor.run import elsewhere, store
from dsdoctor.run.ending import from_outside, status_words, success_line, unknown

_COMMAND = 48
#: If less of the command fits, it is left out.
_LEAST_COMMAND = 10
#: Differences that do not count: the start of an interpreter varies by up to a second, steps are
#: timed by the arrival of their lines, and memory is sampled.
_LEAST_SECONDS = 1.0
_LEAST_STEP_SECONDS = 0.001
_LEAST_GIB = 0.1
#: Normal difference between two runs of one command, in times, throughput and memory.
_NOISE = 0.01


def started(record: RunRecord) -> float:
    """Start of a run, seconds since the epoch."""
    try:
        return dt.datetime.fromisoformat(record.started).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def lasted(record: RunRecord) -> str:
    """How long a run took, or has taken so far; "-" if dsdoctor was killed and did not note it."""
    if record.status is not None:
        return duration(record.seconds)
    return duration(max(0.0, time.time() - started(record))) if store.is_running(record) else "-"


def _no_end(record: RunRecord) -> str:
    return "not yet" if store.is_running(record) else "not known"


def ending(record: RunRecord) -> str:
    """How a run ended, in one or two words."""
    if record.status is None:
        return "running" if store.is_running(record) else "unknown: dsdoctor was killed"
    if record.preflight == "failed" and record.seconds == 0:
        return "not started"
    if record.status == 0:
        return f"failed: {record.slurm_state}" if elsewhere.died(record) else "ok"
    return status_words(record.status).removeprefix("was ")


def _command(record: RunRecord, room: int) -> str:
    return shortened(clean(shlex.join(record.command)), room)


def _width_before_command(rows: Sequence[tuple[str, str, str]]) -> int:
    """Width of the columns before the command."""
    return sum(max(len(row[column]) for row in rows) + 2 for column in range(3))


def table(runs: Sequence[tuple[Path, RunRecord]], base: Path, columns: int | None = None) -> str:
    """One line per run.

    Args:
        runs: the runs to list.
        base: their folder.
        columns: width of the terminal; the command gets the rest. None = not a terminal.
    """
    if not runs:
        return f"no run is saved in `{clean(str(base))}`; start one with `dsdoctor run -- CMD`\n"
    rows = [
        (
            clean(folder.name),
            ending(record).removeprefix("exited with ").removeprefix("killed by "),
            lasted(record),
        )
        for folder, record in runs
    ]
    if columns is not None and _width_before_command(rows) + _LEAST_COMMAND > columns:
        rows = [(name, status.partition(":")[0], took) for name, status, took in rows]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    taken = _width_before_command(rows)
    room = _COMMAND if columns is None else min(_COMMAND, columns - taken)
    lines = []
    for row, (_, record) in zip(rows, runs, strict=True):
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
        cells += [_command(record, room)] * (room >= _LEAST_COMMAND)
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines) + "\n"


def _cause(record: RunRecord) -> Iterator[str]:
    if record.diagnosis is None:
        if elsewhere.died(record) and record.preflight != "failed" and not record.output_bytes:
            text = from_outside(record) or unknown(record, "the job printed nothing")
            yield f"cause     {text}"
        return
    try:
        found = decode.convert(record.diagnosis, Diagnosis)
    except decode.DecodeError:  # written by another version
        yield f"cause     {record.diagnosis.get('summary', '')}"
        return
    for cause in found.causes:
        yield f"cause     {cause.condition}: {cause.message}"
        for line in cause.evidence:
            yield f"          {line.text}"
        yield f"          hint: {cause.hint}"
    if not found.causes:
        shown = found.summary if found.outcome is not Outcome.CLEAN else from_outside(record)
        yield f"cause     {shown or unknown(record, 'the output shows no failure')}"


def show(folder: Path, record: RunRecord) -> str:
    """The most important information about a run."""
    lines = [
        f"{record.id} on {record.host}",
        f"command   {clean(shlex.join(record.command))}",
        f"folder    {record.cwd}",
        f"started   {record.started}, preflight check: {record.preflight}",
        f"ended     {record.ended or _no_end(record)}: {ending(record)}",
        f"figures   {success_line(record)}",
    ]
    if record.gpus or record.gpus_chosen_by:
        chosen = f" ({record.gpus_chosen_by})" if record.gpus_chosen_by else ""
        lines.append(f"GPUs      {', '.join(map(str, record.gpus)) or 'none'}{chosen}")
    lines += _memory_lines(record.figures)
    if record.elsewhere:
        state = f", {record.slurm_state}" if record.slurm_state else ""
        job = f"Slurm job {record.slurm_job}{state}; " if record.slurm_job else ""
        lines.append(f"where     {job}`{record.elsewhere}` ran it on other hosts")
    if record.attempts > 1:
        lines.append(f"attempts  {record.attempts}")
    if record.requeued_for:
        lines.append(f"requeued  Slurm job {record.slurm_job}, for {record.requeued_for}")
    if record.checkpoint:
        lines.append(f"saved     {clean(record.checkpoint)}, the last checkpoint that was reported")
    if record.hang:
        lines.append(f"hang      {record.hang}")
    lines += _cause(record)
    lines += [f"changed   {text}" for text in record.changed]
    lines += [f"{'+' + duration(note.time):<9} {clean(note.text)}" for note in record.notices]
    ends = [f"rank {end.rank} after {duration(end.time)}" for end in record.rank_ends[:8]]
    if ends:
        lines.append("ended     " + ", ".join(ends))
    if record.output_dropped:
        lines.append(
            f"output    {record.output_bytes / GIB:.1f} GiB, of which "
            f"{record.output_dropped / GIB:.1f} GiB in the middle were dropped"
        )
    lines.append(f"saved in  {folder}")
    return "\n".join(map(clean, lines)) + "\n"


def _memory_lines(figures: Figures) -> Iterator[str]:
    """Peak memory of each GPU and of the ranks, with the prediction; empty if none was sampled."""
    predicted = figures.predicted
    each = [f"GPU {gpu} {size / GIB:.1f} GiB" for gpu, size in figures.peak_gpu_bytes.items()]
    if len(each) > 1 or (each and predicted is not None):
        words = "" if predicted is None else f"; {predicted.gpu_bytes / GIB:.1f} GiB predicted"
        yield f"GPU peak  {', '.join(each)}{words}"
    if figures.peak_ranks_bytes is not None:
        text = f"{in_words(figures.peak_ranks_bytes)} resident"
        if len(figures.peak_rank_bytes) > 1:
            rank, size = max(figures.peak_rank_bytes.items(), key=lambda row: row[1])
            text += f" of all ranks; rank {rank} had {in_words(size)}"
        if predicted is not None and predicted.host_bytes is not None:
            text += f"; {predicted.host_bytes / GIB:.1f} GiB predicted"
        yield f"host peak {text}"


@dataclasses.dataclass(frozen=True)
class _Figure:
    """A figure by which two runs are compared.

    Attributes:
        value: of one run; None = not reported.
        unit: of the value.
        least: a difference below this does not count, in the unit of the value.
        share: a difference below this share of the first value does not count either.
    """

    value: float | None
    unit: str = ""
    least: float = 0.0
    share: float = 0.0005


def _values(record: RunRecord) -> dict[str, _Figure]:
    """The figures of a run by name."""
    figures = record.figures
    peak = max(figures.peak_gpu_bytes.values(), default=None)
    predicted = None if figures.predicted is None else figures.predicted.gpu_bytes
    return {
        "duration": _Figure(record.seconds, "s", _LEAST_SECONDS, _NOISE),
        "last step": _Figure(figures.steps),
        "step time": _Figure(figures.step_seconds, "s", _LEAST_STEP_SECONDS, _NOISE),
        "tokens/s": _Figure(figures.tokens_per_second, share=_NOISE),
        "samples/s": _Figure(figures.samples_per_second, share=_NOISE),
        "loss": _Figure(figures.loss),
        "peak GPU memory": _memory(peak),
        "predicted": _memory(predicted),
        "peak memory of ranks": _memory(figures.peak_ranks_bytes),
        "peak host memory": _memory(figures.peak_host_bytes),
    }


#: Names for readers, if the name in JSON is not clear enough.
_TITLES = {"peak host memory": "host, all programs"}


def _memory(count: int | None) -> _Figure:
    return _Figure(None if count is None else count / GIB, "GiB", _LEAST_GIB, _NOISE)


def _change(before: _Figure, after: _Figure) -> float | None:
    """Change against the first run in percent; None if there is none that counts.

    >>> _change(_Figure(0.5), _Figure(0.4)), _change(_Figure(0.0), _Figure(1.0))
    (-20.0, None)
    >>> _change(_Figure(0.01, "s", 1.0), _Figure(0.02, "s", 1.0)) is None
    True
    """
    if not before.value or after.value is None:
        return None
    difference = after.value - before.value
    if abs(difference) < max(before.least, before.share * abs(before.value)):
        return None
    change = 100 * difference / before.value
    return round(change, 1) if math.isfinite(change) and difference else None


def _percent(change: float | None) -> str:
    """A change in words.

    >>> _percent(-20.0), _percent(3.21), _percent(1234.5), _percent(None)
    ('-20%', '+3.2%', '+1,234%', '')
    """
    if change is None:
        return ""
    digits = 0 if abs(change) >= 10 else 1  # noqa: PLR2004
    return f"{change:+,.{digits}f}%".replace(".0%", "%")


def figures(before: RunRecord, after: RunRecord) -> list[FigureChange]:
    """The figures that at least one of two runs has, and how they changed."""
    right = _values(after)
    return [
        FigureChange(
            name=name,
            unit=left.unit,
            before=left.value,
            after=right[name].value,
            change_percent=_change(left, right[name]),
        )
        for name, left in _values(before).items()
        if left.value is not None or right[name].value is not None
    ]


def figure_rows(before: RunRecord, after: RunRecord) -> list[tuple[str, str, str, str]]:
    """Name, value of each run, and the change in percent; figures of neither run are left out."""
    rows = [("status", ending(before), ending(after), "")]
    for row in figures(before, after):
        texts = [_value_text(row.name, row.unit, value) for value in (row.before, row.after)]
        name = _TITLES.get(row.name, row.name)
        rows.append((name, texts[0], texts[1], _percent(row.change_percent)))
    return rows


def _value_text(name: str, unit: str, value: float | None) -> str:
    if value is None:
        return "-"
    if unit == "GiB":
        return in_words(round(value * GIB))
    return duration(value) if name == "duration" else f"{rounded(value, 4)} {unit}".rstrip()


def fact_changes(before: Path, after: Path) -> list[str]:
    """What differed between the machines of two runs, if both have a snapshot."""
    snapshots = []
    for folder in (before, after):
        try:
            data = files.read(folder / "snapshot.json")
            snapshots.append(from_json(data, str(folder / "snapshot.json")))
        except (OSError, UsageError):
            return []
    return known_good.changes(snapshots[0], snapshots[1])


def document(before: tuple[Path, RunRecord], after: tuple[Path, RunRecord]) -> RunDiff:
    """The comparison of two runs as a JSON document."""
    runs = [
        ComparedRun(
            id=folder.name,
            host=record.host,
            command=record.command,
            started=record.started,
            status=record.status,
            ending=ending(record),
        )
        for folder, record in (before, after)
    ]
    return RunDiff(
        before=runs[0],
        after=runs[1],
        figures=figures(before[1], after[1]),
        changes=fact_changes(before[0], after[0]),
    )


def compare(
    before: tuple[Path, RunRecord], after: tuple[Path, RunRecord], columns: int | None = None
) -> str:
    """Two runs side by side, then the differences between their machines.

    Args:
        before: the first run.
        after: the second one.
        columns: width of the terminal; None = not a terminal.
    """
    rows = figure_rows(before[1], after[1])
    names = (before[0].name, after[0].name)
    head = [("", *names, "")]
    wide = [max(len(row[column]) for row in (*head, *rows)) for column in range(4)]
    lines = []
    if columns is not None and sum(wide) + 6 > columns:
        lines += [f"before: {names[0]}", f"after:  {names[1]}"]
        head = [("", "before", "after", "")]
        wide = [max(len(row[column]) for row in (*head, *rows)) for column in range(4)]
    lines += [
        "  ".join(cell.ljust(width) for cell, width in zip(row, wide, strict=True))
        for row in (*head, *rows)
    ]
    if before[1].command != after[1].command:
        lines.append(f"command: {clean(shlex.join(before[1].command))}")
        lines.append(f"      →  {clean(shlex.join(after[1].command))}")
    lines += fact_changes(before[0], after[0])
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"
