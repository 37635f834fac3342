"""`nvidia-smi --query-gpu=… --format=csv`: one row for each GPU, columns as requested."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.paste import nvidia_smi_values as values
from dsdoctor.paste.collect_env import state_driver
from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi import bdf
from dsdoctor.paste.reader import Reader, state_gpu
from dsdoctor.paste.statements import Statements

_ASKED = re.compile(r"--query-gpu[= ](?P<columns>[\w.,]+)")
_UNIT = re.compile(r" \[[\w%/]+\]$")
#: A heading has at least two columns, and one of these, or one that begins with one of _MARK_PARTS:
#: other tools print tables of `name, …` too.
_MARKS = frozenset(
    {"driver_version", "pci.bus_id", "gpu_bus_id", "memory.total", "memory.used", "memory.free",
     "utilization.gpu", "uuid", "gpu_uuid", "gpu_name", "temperature.gpu", "power.draw",
     "compute_cap", "pcie.link.width.current", "pcie.link.gen.current", "power.limit",
     "power.default_limit", "clocks_event_reasons.active", "clocks_throttle_reasons.active"}
)  # fmt: skip
_MARK_PARTS = ("ecc.errors.", "remapped_rows.", "retired_pages.")
_COLUMN = re.compile(r"[a-z][a-z0-9_.]{2,60}$")
_LOST = {"[GPU is lost]": (15, "GPU_IS_LOST"), "[GPU requires reset]": (16, "RESET_REQUIRED")}


def _bus(value: str) -> str | None:
    found = re.fullmatch(r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d", value)
    return bdf(value) if found else None


def _uuid(value: str) -> str | None:
    return value if value.startswith("GPU-") else None


#: Column to the field and how its value is parsed (`nvidia-smi --help-query-gpu`, driver 580).
_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "uuid": ("uuid", _uuid),
    "gpu_uuid": ("uuid", _uuid),
    "pci.bus_id": ("pci_bdf", _bus),
    "gpu_bus_id": ("pci_bdf", _bus),
    "memory.total": ("memory_total_bytes", values.mib),
    "persistence_mode": ("persistence_mode", values.switch),
    "compute_mode": ("compute_mode", values.mode),
    "mig.mode.current": ("mig_mode", values.switch),
    "mig.mode.pending": ("mig_mode_pending", values.switch),
    "ecc.mode.current": ("ecc_mode", values.switch),
    "ecc.mode.pending": ("ecc_mode_pending", values.switch),
    "ecc.errors.uncorrected.volatile.total": ("health.ecc_volatile_uncorrected", values.number),
    "ecc.errors.corrected.volatile.total": ("health.ecc_volatile_corrected", values.number),
    "ecc.errors.corrected.aggregate.dram": ("health.dram_aggregate_corrected", values.number),
    "ecc.errors.corrected.aggregate.sram": ("health.sram_aggregate_corrected", values.number),
    "retired_pages.double_bit.count": ("health.retired_pages_double_bit", values.number),
    "retired_pages.pending": ("health.retired_pages_pending", values.switch),
    "remapped_rows.correctable": ("health.remapped_rows_corrected", values.number),
    "remapped_rows.uncorrectable": ("health.remapped_rows_uncorrected", values.number),
    "remapped_rows.pending": ("health.remapped_rows_pending", values.switch),
    "remapped_rows.failure": ("health.remapped_rows_failure", values.switch),
    "gpu_recovery_action": ("health.recovery_action", values.recovery),
    "pcie.link.width.current": ("pcie.width", values.number),
    "pcie.link.width.max": ("pcie.max_width", values.number),
    "power.limit": ("health.power_limit_mw", values.milliwatts),
    "power.default_limit": ("health.power_limit_default_mw", values.milliwatts),
    "clocks_event_reasons.active": ("health.event_reasons", values.reasons),
    "clocks_throttle_reasons.active": ("health.event_reasons", values.reasons),
    "vbios_version": ("vbios", lambda value: value),
}
_MOST_GPUS = 64


def _read(lines: Sequence[Line], into: Statements) -> None:
    asked: list[str] | None = None
    for place, line in enumerate(lines):
        command = _ASKED.search(line.text)
        if command:
            columns = command["columns"].strip(",").split(",")
            asked = columns if "noheader" in line.text else None
            if asked:
                _rows(lines, place + 1, asked, into)
            continue
        heading = _heading(line.text)
        if heading:
            _rows(lines, place + 1, heading, into)


def _heading(text: str) -> list[str] | None:
    """The columns of a heading, without their units."""
    cells = [_UNIT.sub("", cell.strip()) for cell in text.split(",")]
    if len(cells) < 2 or not all(map(_COLUMN.match, cells)):  # noqa: PLR2004
        return None
    marked = any(cell in _MARKS or cell.startswith(_MARK_PARTS) for cell in cells)
    return cells if marked else None


def _rows(lines: Sequence[Line], place: int, columns: list[str], into: Statements) -> None:
    for number, line in enumerate(lines[place : place + _MOST_GPUS]):
        cells = [cell.strip() for cell in line.text.split(",")]
        if line.fence or len(cells) != len(columns) or not all(cells):
            return
        row = dict(zip(columns, cells, strict=True))
        index = row.get("index", str(number))
        if not index.isdecimal() or int(index) >= _MOST_GPUS:
            return
        _gpu(int(index), row, line, into)


def _gpu(index: int, row: dict[str, str], line: Line, into: Statements) -> None:
    into.recognized()
    name = row.get("name") or row.get("gpu_name")
    if name and not name.startswith("["):
        state_gpu(index, name, line, into)
    else:
        into.state(Gpus, f"gpus.{index}.index", index, line)
    lost = next((each for each in _LOST if each in row.values()), None)
    if lost:
        code, word = _LOST[lost]
        error = {"code": code, "name": word, "message": lost.strip("[]"), "call": "nvidia-smi"}
        into.state(Gpus, f"gpus.{index}.error", error, line)
    if re.fullmatch(r"\d{3}\.\d{1,4}(?:\.\d{1,4})?", row.get("driver_version", "")):
        state_driver(row["driver_version"], line, into)
    capability = re.fullmatch(r"(\d{1,2})\.(\d)", row.get("compute_cap", ""))
    if capability:
        into.state(Gpus, f"gpus.{index}.cc_major", int(capability[1]), line)
        into.state(Gpus, f"gpus.{index}.cc_minor", int(capability[2]), line)
    for column, (field, read) in _FIELDS.items():
        value = read(row[column]) if column in row else None
        if value is not None:
            into.state(Gpus, f"gpus.{index}.{field}", value, line)


READER = Reader("nvidia-smi --query-gpu", _read)
