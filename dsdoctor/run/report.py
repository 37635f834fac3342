"""Kept runs for a reader: the list, one run, two runs side by side."""

from __future__ import annotations

import datetime as dt
import math
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from dsdoctor import files, known_good
from dsdoctor.errors import UsageError
from dsdoctor.model import decode
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.run_record import RunRecord
from dsdoctor.model.snapshot import from_json
from dsdoctor.model.units import GIB
from dsdoctor.report.text import clean
from dsdoctor.run import store
from dsdoctor.run.ending import status_words, success_line
from dsdoctor.run.notices import duration

_COMMAND = 48


def started(record: RunRecord) -> float:
    """Start of a run, seconds since the epoch."""
    try:
        return dt.datetime.fromisoformat(record.started).timestamp()
    except (ValueError, OverflowError):
        return 0.0


def ending(record: RunRecord) -> str:
    """How a run ended, in a word or two."""
    if record.status is None:
        return "running" if store.is_running(record) else "unknown: dsdoctor was killed"
    if record.preflight == "failed" and record.seconds == 0:
        return "not started"
    return "ok" if record.status == 0 else status_words(record.status).removeprefix("was ")


def _command(record: RunRecord) -> str:
    text = clean(shlex.join(record.command))
    return text if len(text) <= _COMMAND else text[: _COMMAND - 1] + "…"


def table(runs: Sequence[tuple[Path, RunRecord]], base: Path) -> str:
    """One line a run."""
    if not runs:
        return f"no run is kept in `{base}`; start one with `dsdoctor run -- CMD`\n"
    rows = [
        (clean(folder.name), ending(record), duration(record.seconds), _command(record))
        for folder, record in runs
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, [*widths, 0], strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join(lines) + "\n"


def _cause(record: RunRecord) -> Iterator[str]:
    if record.diagnosis is None:
        return
    try:
        found = decode.convert(record.diagnosis, Diagnosis)
    except decode.DecodeError:  # of another version
        yield f"cause     {record.diagnosis.get('summary', '')}"
        return
    for cause in found.causes:
        yield f"cause     {cause.condition}: {cause.message}"
        for line in cause.evidence:
            yield f"          {line.text}"
        yield f"          hint: {cause.hint}"
    if not found.causes:
        yield f"cause     {found.summary}"


def show(folder: Path, record: RunRecord) -> str:
    """Everything about a run that a reader asks for first."""
    lines = [
        f"{record.id} on {record.host}",
        f"command   {clean(shlex.join(record.command))}",
        f"folder    {record.cwd}",
        f"started   {record.started}, check before the start: {record.preflight}",
        f"ended     {record.ended or 'not yet'}: {ending(record)}",
        f"figures   {success_line(record)}",
    ]
    if record.gpus or record.gpus_chosen_by:
        chosen = f" ({record.gpus_chosen_by})" if record.gpus_chosen_by else ""
        lines.append(f"GPUs      {', '.join(map(str, record.gpus)) or 'none'}{chosen}")
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
    lines += [f"+{duration(note.time):<9} {clean(note.text)}" for note in record.notices]
    ends = [f"rank {end.rank} after {duration(end.time)}" for end in record.rank_ends[:8]]
    if ends:
        lines.append("ended     " + ", ".join(ends))
    if record.output_dropped:
        lines.append(
            f"output    {record.output_bytes / GIB:.1f} GiB, of which "
            f"{record.output_dropped / GIB:.1f} GiB in the middle are no longer kept"
        )
    lines.append(f"kept in   {folder}")
    return "\n".join(map(clean, lines)) + "\n"


def _values(record: RunRecord) -> dict[str, tuple[float | None, str]]:
    """What two runs are compared by: name to value and unit."""
    figures = record.figures
    peak = max(figures.peak_gpu_bytes.values(), default=None)
    host = figures.peak_host_bytes
    predicted = None if figures.predicted is None else figures.predicted.gpu_bytes
    return {
        "steps": (figures.steps, ""),
        "step time": (figures.step_seconds, " s"),
        "tokens/s": (figures.tokens_per_second, ""),
        "samples/s": (figures.samples_per_second, ""),
        "loss": (figures.loss, ""),
        "peak GPU memory": (None if peak is None else peak / GIB, " GiB"),
        "predicted": (None if predicted is None else predicted / GIB, " GiB"),
        "peak host memory": (None if host is None else host / GIB, " GiB"),
    }


def _percent(before: float | None, after: float | None) -> str:
    """Change against the first run.

    >>> _percent(0.5, 0.4), _percent(2.0, 2.0), _percent(0.0, 1.0)
    ('-20 %', '', '')
    """
    if not before or after is None:
        return ""
    change = 100 * (after / before - 1)
    return f"{change:+.3g} %" if math.isfinite(change) and abs(change) >= 0.05 else ""  # noqa: PLR2004


def figure_rows(before: RunRecord, after: RunRecord) -> list[tuple[str, str, str, str]]:
    """Name, value of each run, and the change in percent; what neither run has is left out."""
    rows = [
        ("status", ending(before), ending(after), ""),
        (
            "duration",
            duration(before.seconds),
            duration(after.seconds),
            _percent(before.seconds, after.seconds),
        ),
    ]
    right = _values(after)
    for name, (value, unit) in _values(before).items():
        other = right[name][0]
        if value is None and other is None:
            continue
        texts = ["-" if one is None else f"{one:.4g}{unit}" for one in (value, other)]
        rows.append((name, texts[0], texts[1], _percent(value, other)))
    return rows


def fact_changes(before: Path, after: Path) -> list[str]:
    """What differed between two runs' machines, if the snapshots of both are there."""
    snapshots = []
    for folder in (before, after):
        try:
            data = files.read(folder / "snapshot.json")
            snapshots.append(from_json(data, str(folder / "snapshot.json")))
        except (OSError, UsageError):
            return []
    return known_good.changes(snapshots[0], snapshots[1])


def compare(before: tuple[Path, RunRecord], after: tuple[Path, RunRecord]) -> str:
    """Two runs side by side, then what differed between them."""
    rows = [("", before[0].name, after[0].name, ""), *figure_rows(before[1], after[1])]
    wide = [max(len(row[column]) for row in rows) for column in (1, 2)]
    lines = [
        f"{name:<18}{left:<{wide[0]}}  {right:<{wide[1]}}  {change}"
        for name, left, right, change in rows
    ]
    if before[1].command != after[1].command:
        lines.append(f"command: {clean(shlex.join(before[1].command))}")
        lines.append(f"      →  {clean(shlex.join(after[1].command))}")
    lines += fact_changes(before[0], after[0])
    return "\n".join(clean(line).rstrip() for line in lines) + "\n"
