"""Figures of a running job for Prometheus' textfile collector, and exports of a finished one."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from dsdoctor import files
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import LARGEST
from dsdoctor.model.run_record import RunRecord
from dsdoctor.run.progress import Progress

#: Cells of a table: a week of samples of 8 GPUs and ranks has 20 million.
_MOST_CELLS = 100_000_000
#: An event file has 64 bits for the step.
_LARGEST_STEP = 1 << 62
#: Names of columns. A stored run may come from another person, and a spreadsheet treats a cell that
#: begins with `=`, `+`, `-` or `@` as a formula.
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_.]{0,80}")


#: Descriptions of the metrics.
_HELP = {
    "host_memory_used_bytes": "Memory in use on the host, by all programs.",
    "gpu_memory_used_bytes": "Memory in use on a GPU.",
    "gpu_utilization_percent": "Share of time in which a kernel ran on a GPU.",
    "gpu_power_watts": "Power draw of a GPU.",
    "gpu_temperature_celsius": "Temperature of a GPU.",
    "rank_resident_bytes": "Resident memory of a rank.",
    "rank_cpu_seconds_total": "CPU time of a rank since it started.",
    "step": "Last step that the job reported.",
    "step_seconds": "Time of the last step.",
    "loss": "Last loss that the job reported.",
    "tokens_per_second": "Last throughput that the job reported.",
    "output_bytes_total": "Bytes that the job has written.",
    "notices_total": "Warnings about the job so far.",
}


def _rows(
    sample: Mapping[str, Any], progress: Progress, record: RunRecord, written: int
) -> Iterator[tuple[str, dict[str, str], float | None]]:
    host = sample.get("host") or {}
    yield "host_memory_used_bytes", {}, host.get("used")
    for gpu in sample.get("gpus") or ():
        label = {"gpu": str(gpu["index"]), "uuid": str(gpu.get("uuid") or "")}
        yield "gpu_memory_used_bytes", label, gpu.get("used")
        yield "gpu_utilization_percent", label, gpu.get("util")
        yield "gpu_power_watts", label, gpu.get("power_w")
        yield "gpu_temperature_celsius", label, gpu.get("temp_c")
    for row in sample.get("ranks") or ():
        label = {"rank": str(row["rank"])}
        yield "rank_resident_bytes", label, row["rss"]
        yield "rank_cpu_seconds_total", label, row["cpu"]
    yield "step", {}, progress.last.step
    yield "step_seconds", {}, progress.recent_seconds(1)
    yield "loss", {}, progress.last.loss
    yield "tokens_per_second", {}, progress.last.tokens_per_second
    yield "output_bytes_total", {}, written
    yield "notices_total", {}, len(record.notices)


def write_metrics(
    path: Path, sample: Mapping[str, Any], progress: Progress, record: RunRecord, written: int
) -> None:
    """Rewrites the file atomically; a full disk does not stop the job.

    Args:
        path: the file.
        sample: the newest one.
        progress: of the job.
        record: of the run.
        written: bytes of output so far.
    """
    groups: dict[str, list[str]] = {}  # the format requires all lines of a metric in one group
    for name, labels, value in _rows(sample, progress, record, written):
        if value is not None:
            inner = {"run": record.id, **labels}
            words = ",".join(f'{key}="{_escaped(text)}"' for key, text in inner.items())
            line = f"dsdoctor_run_{name}{{{words}}} {float(value):.15g}"
            groups.setdefault(name, []).append(line)
    lines: list[str] = []
    for name, rows in groups.items():
        kind = "counter" if name.endswith("_total") else "gauge"
        lines.append(f"# HELP dsdoctor_run_{name} {_HELP[name]}")
        lines += [f"# TYPE dsdoctor_run_{name} {kind}", *rows]
    with contextlib.suppress(OSError):
        files.write(path, "\n".join(lines) + "\n", mode=0o644)


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def read_lines(path: Path) -> list[dict[str, Any]]:
    """The rows of a file of JSON lines; truncated and foreign lines are left out."""
    rows: list[dict[str, Any]] = []
    with contextlib.suppress(OSError):
        for line in files.read(path).decode("utf-8", "replace").splitlines():
            with contextlib.suppress(ValueError, RecursionError):
                row = json.loads(line)  # not msgspec: a loss may be NaN
                if isinstance(row, dict):
                    rows.append(row)
    return rows


def step_rows(folder: Path) -> list[dict[str, Any]]:
    """The steps of a run: numbers only, whatever the file contains."""
    return [
        {key: value for key, value in row.items() if _NAME.fullmatch(key) and _is_number(value)}
        for row in read_lines(folder / "steps.jsonl")
    ]


def _is_number(value: object) -> bool:
    """A number that a float can contain, NaN included: a loss may be one."""
    return isinstance(value, (int, float)) and not abs(value) > LARGEST


def flat_samples(folder: Path, started: float) -> list[dict[str, Any]]:
    """One row per sample, with columns such as `gpu0.used` and `rank3.rss`; times from the start.

    Samples that are not of this form are left out.
    """
    rows: list[dict[str, Any]] = []
    samples = read_lines(folder / "samples.jsonl.1") + read_lines(folder / "samples.jsonl")
    for sample in samples:
        with contextlib.suppress(KeyError, TypeError, ValueError, AttributeError, OverflowError):
            row = _flattened(sample, started)
            rows.append(
                {
                    key: value
                    for key, value in row.items()
                    if _NAME.fullmatch(key) and (value is None or _is_number(value))
                }
            )
    return rows


def _flattened(sample: Mapping[str, Any], started: float) -> dict[str, Any]:
    row: dict[str, Any] = {"seconds": round(float(sample["t"]) - started, 2)}
    host = sample.get("host") or {}
    row |= {f"host.{key}": value for key, value in host.items()}
    for gpu in sample.get("gpus") or ():
        for key in ("used", "util", "power_w", "temp_c"):
            row[f"gpu{int(gpu['index'])}.{key}"] = gpu.get(key)
    for rank in sample.get("ranks") or ():
        row[f"rank{int(rank['rank'])}.rss"] = rank["rss"]
        row[f"rank{int(rank['rank'])}.cpu"] = rank["cpu"]
    if not _is_number(row["seconds"]):
        raise ValueError("no time")
    return row


def to_csv(rows: list[dict[str, Any]]) -> str:
    """Rows with different columns as one table.

    Raises:
        UsageError: there are more cells than a run can have.
    """
    if not rows:
        return ""
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if len(columns) * len(rows) > _MOST_CELLS:
        raise UsageError(
            f"the table would have {len(columns)} columns and {len(rows)} rows; "
            "export it with `--format json`"
        )
    out = io.StringIO()
    writer = csv.DictWriter(out, columns, restval="")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def _scalars(
    steps: list[dict[str, Any]], samples: list[dict[str, Any]]
) -> Iterator[tuple[float, float, dict[str, float]]]:
    """Seconds from the start, the position on the x axis, and the values at that time."""
    for number, row in enumerate(steps):
        names = {"seconds": "step_seconds"}
        values = {names.get(key, key): row[key] for key in row if key not in ("t", "step")}
        yield (
            row.get("t", 0.0),
            row.get("step", number),
            {f"training/{k}": v for k, v in values.items()},
        )
    for row in samples:
        read = {key: row[key] for key in row if key != "seconds" and row[key] is not None}
        yield row["seconds"], row["seconds"], read


def to_tensorboard(
    folder: Path, steps: list[dict[str, Any]], samples: list[dict[str, Any]], started: float
) -> None:
    """Writes event files: the training by step, the machine by seconds from the start.

    Args:
        folder: the log folder for TensorBoard.
        steps: as `step_rows` returns them.
        samples: as `flat_samples` returns them.
        started: when the run was started, seconds since the epoch.

    Raises:
        UsageError: the package `tensorboard` is not installed next to dsdoctor, or the folder
            cannot be written.
    """
    try:
        from tensorboard.compat.proto.event_pb2 import Event  # noqa: PLC0415  # optional
        from tensorboard.compat.proto.summary_pb2 import Summary  # noqa: PLC0415
        from tensorboard.summary.writer.event_file_writer import (  # noqa: PLC0415
            EventFileWriter,
        )
    except ImportError:
        raise UsageError(
            "`--format tensorboard` needs the package `tensorboard`; install it into dsdoctor's "
            "environment, or export as csv"
        ) from None
    try:
        writer = EventFileWriter(str(folder))
        for moment, at, values in _scalars(steps, samples):
            if not math.isfinite(moment) or not abs(at) < _LARGEST_STEP:
                continue
            rows = [Summary.Value(tag=key, simple_value=values[key]) for key in values]
            writer.add_event(
                Event(wall_time=started + moment, step=round(at), summary=Summary(value=rows))
            )
        writer.close()
    except OSError as error:
        raise UsageError(
            f"`{folder}` cannot be written: {error.strerror or error}; pass another folder"
        ) from None
