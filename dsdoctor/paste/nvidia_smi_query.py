"""`nvidia-smi -q`: one block for each GPU, keys indented below their section.

Only what describes the GPU is read, not what is in use at that moment (see `nvidia_smi`).

A block has no index. The blocks of a whole report are in order of the indices; the block of one GPU
(`-i 5`), or one that somebody cut out, is known by its PCI address only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

from dsdoctor.model.facts.gpu import EventReason, FabricHealth, FabricState, Gpus, Nvml
from dsdoctor.model.facts.machine import NvidiaSmi
from dsdoctor.paste import nvidia_smi_values as values
from dsdoctor.paste.collect_env import state_driver
from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi import bdf, known_index, place_of
from dsdoctor.paste.reader import Reader, state_gpu
from dsdoctor.paste.statements import Statements

_TITLE = re.compile(r"\s*=+NVSMI LOG=+\s*$")
_GPU = re.compile(r"GPU (?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)$")
_KEY = re.compile(r"(?P<indent>\s*)(?P<key>\S.*?)(?:\s+: (?P<value>.*?))?\s*$")
#: The first key of a block, by which one without the title above it is recognized.
_FIRST = re.compile(r"\s+Product Name\s+: \S")
_ATTACHED = re.compile(r"Attached GPUs\s+: (?P<count>\d{1,3})\s*$")
_MINOR = re.compile(r"\s+Minor Number\s+: (?P<number>\d{1,3})\s*$")


def _text(value: str) -> str | None:
    return value if value and value != "N/A" else None


def _width(value: str) -> int | None:
    found = re.fullmatch(r"(\d{1,2})x", value)
    return int(found[1]) if found else None


#: `Status` in the section `Fabric`, since driver 525: NVML's texts and codes (nvmlGpuFabricInfo_t).
_STATUS = {"Success": 0, "Insufficient Resources": 23, "Not Ready": 27, "Unknown Error": 999}


def _fabric_state(value: str) -> int | None:
    names = {"Not Started": FabricState.NOT_STARTED, "In Progress": FabricState.IN_PROGRESS}
    return names.get(value) or (FabricState.COMPLETED if value == "Completed" else None)


def _fabric_status(value: str) -> int | None:
    return _STATUS.get(value)


def _cluster(value: str) -> str | None:
    found = re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", value.lower())
    return found[0].replace("-", "") if found else None


def _virtualization(value: str) -> str | None:
    names = {
        "None": "NONE",
        "Pass-Through": "PASSTHROUGH",
        "VGPU": "VGPU",
        "Host VGPU": "HOST_VGPU",
    }
    return names.get(value)


def _licensed(value: str) -> bool | None:
    # further words follow in parentheses: the expiry, or whether the GPU is slowed down already
    found = re.match(r"(?:Unl|L)icensed\b", value)
    return found[0] == "Licensed" if found else None


def _fabric_health(value: str) -> int | None:
    names = {"Healthy": FabricHealth.HEALTHY, "Unhealthy": FabricHealth.UNHEALTHY}
    return names.get(value) or (
        FabricHealth.LIMITED_CAPACITY if value == "Limited Capacity" else None
    )


#: The section `Clocks Event Reasons` (`Clocks Throttle Reasons` before driver 530); nvml.h.
_REASONS = {
    "Idle": EventReason.IDLE,
    "Applications Clocks Setting": EventReason.APPLICATION_CLOCKS,
    "SW Power Cap": EventReason.SW_POWER_CAP,
    "HW Slowdown": EventReason.HW_SLOWDOWN,
    "HW Thermal Slowdown": EventReason.HW_THERMAL,
    "HW Power Brake Slowdown": EventReason.HW_POWER_BRAKE,
    "Sync Boost": EventReason.SYNC_BOOST,
    "SW Thermal Slowdown": EventReason.SW_THERMAL,
    "Display Clock Setting": EventReason.DISPLAY_CLOCKS,
}
_REASON = re.compile(r"Clocks (?:Event|Throttle) Reasons/(?P<name>[A-Z][\w ]{2,40})$")
#: Keys that prove the section complete: one that is cut off may lack one of them.
_DECISIVE = frozenset({"Idle", "HW Slowdown"})

#: Section path (names of the sections above, joined) to the field and how its value is parsed.
#: Sections as in drivers 384 to 610; values that have moved are listed twice.
_FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "GPU UUID": ("uuid", _text),
    "Persistence Mode": ("persistence_mode", values.switch),
    "Compute Mode": ("compute_mode", values.mode),
    "MIG Mode/Current": ("mig_mode", values.switch),
    "MIG Mode/Pending": ("mig_mode_pending", values.switch),
    "ECC Mode/Current": ("ecc_mode", values.switch),
    "Ecc Mode/Current": ("ecc_mode", values.switch),
    "ECC Mode/Pending": ("ecc_mode_pending", values.switch),
    "Ecc Mode/Pending": ("ecc_mode_pending", values.switch),
    "FB Memory Usage/Total": ("memory_total_bytes", values.mib),
    "Remapped Rows/Correctable Error": ("health.remapped_rows_corrected", values.number),
    "Remapped Rows/Uncorrectable Error": ("health.remapped_rows_uncorrected", values.number),
    "Remapped Rows/Pending": ("health.remapped_rows_pending", values.switch),
    "Remapped Rows/Remapping Failure Occurred": ("health.remapped_rows_failure", values.switch),
    "Retired Pages/Single Bit ECC": ("health.retired_pages_single_bit", values.number),
    "Retired Pages/Double Bit ECC": ("health.retired_pages_double_bit", values.number),
    "Retired Pages/Pending Page Blacklist": ("health.retired_pages_pending", values.switch),
    "Retired Pages/Pending": ("health.retired_pages_pending", values.switch),
    "GPU Link Info/Link Width/Max": ("pcie.max_width", _width),
    "PCI/GPU Link Info/Link Width/Max": ("pcie.max_width", _width),
    "PCI/GPU Link Info/Link Width/Current": ("pcie.width", _width),
    "Power Readings/Power Limit": ("health.power_limit_mw", values.milliwatts),
    "Power Readings/Default Power Limit": ("health.power_limit_default_mw", values.milliwatts),
    "GPU Power Readings/Current Power Limit": ("health.power_limit_mw", values.milliwatts),
    "GPU Power Readings/Requested Power Limit": ("health.power_limit_set_mw", values.milliwatts),
    "GPU Power Readings/Default Power Limit": ("health.power_limit_default_mw", values.milliwatts),
    "GPU Recovery Action": ("health.recovery_action", values.recovery),
    "ECC Errors/Channel Repair Pending": ("health.channel_repair_pending", values.switch),
    "ECC Errors/TPC Repair Pending": ("health.tpc_repair_pending", values.switch),
    "ECC Errors/Aggregate/DRAM Correctable": ("health.dram_aggregate_corrected", values.number),
    "ECC Errors/Aggregate/SRAM Correctable": ("health.sram_aggregate_corrected", values.number),
    "ECC Errors/Aggregate/SRAM Threshold Exceeded": (
        "health.sram_threshold_exceeded",
        values.switch,
    ),
    "GSP Firmware Version": ("gsp_version", _text),
    "VBIOS Version": ("vbios", _text),
    "Minor Number": ("minor_number", values.number),
    "GPU Virtualization Mode/Virtualization Mode": ("virtualization", _virtualization),
    "vGPU Software Licensed Product/License Status": ("licensed", _licensed),
    "GRID Licensed Product/License Status": ("licensed", _licensed),
    "Fabric/State": ("fabric.state", _fabric_state),
    "Fabric/Status": ("fabric.status", _fabric_status),
    "Fabric/CliqueId": ("fabric.clique", values.number),
    "Fabric/ClusterUUID": ("fabric.cluster", _cluster),
    "Fabric/Health/Summary": ("fabric.health_summary", _fabric_health),
}


def _read(lines: Sequence[Line], into: Statements) -> None:
    place = 0
    while place < len(lines):
        if _TITLE.match(lines[place].text):
            place = _log(lines, place + 1, into, titled=True)
        elif _begins_block(lines, place):
            place = _log(lines, place, into, titled=False)
        place += 1


def _begins_block(lines: Sequence[Line], place: int) -> bool:
    """Whether this is the first line of a block that has lost the title above it."""
    below = lines[place + 1].text if place + 1 < len(lines) else ""
    return bool(_FIRST.match(below) and _GPU.match(lines[place].text.strip()))


def _log(lines: Sequence[Line], place: int, into: Statements, *, titled: bool) -> int:
    into.recognized()
    report = QueryReport(into, numbered=_is_numbered(lines[place:], titled=titled))
    for at in range(place, len(lines)):
        if lines[at].fence or _TITLE.match(lines[at].text) or not report.take(lines[at]):
            report.finish()
            return at - 1 if at > place else place
    report.finish()
    return len(lines)


def _is_numbered(lines: Sequence[Line], *, titled: bool) -> bool:
    """Whether the blocks are those of the GPUs from index 0 on.

    They are if there are as many as are attached. If there are fewer, somebody has cut off the list
    or asked for one GPU; the minor numbers of a list that was cut off begin with 0.
    """
    blocks, attached = 0, None
    minors: list[int] = []
    for line in lines:
        if line.fence or _TITLE.match(line.text):
            break
        if _GPU.match(line.text.strip()):
            blocks += 1
        elif count := _ATTACHED.match(line.text):
            attached = int(count["count"])
        elif minor := _MINOR.match(line.text):
            minors.append(int(minor["number"]))
    if titled and (attached is None or blocks >= attached):
        return True
    return bool(minors) and minors == list(range(blocks))[: len(minors)]


#: Counters of errors since the driver was loaded: since Ampere by memory (uncorrected ones of SRAM
#: also by kind, since driver 530), before it the total.
_VOLATILE = re.compile(
    r"E(?:CC|cc) Errors/Volatile/(?:[SD]RAM Correctable|Single Bit/Total"
    r"|(?P<bad>[SD]RAM Uncorrectable(?: Parity| SEC-DED)?|Double Bit/Total))$"
)


class QueryReport:
    """One report: keys of the driver, then the GPUs in order of their addresses."""

    def __init__(self, into: Statements, *, numbered: bool = True) -> None:
        self._into = into
        self._numbered = numbered
        self._position = -1
        self._index = -1
        self._above: list[tuple[int, str]] = []
        self._blank = 0
        self._errors: dict[tuple[int, str], tuple[int, Line]] = {}
        self._reasons: dict[int, dict[str, tuple[bool, Line]]] = {}

    def take(self, line: Line) -> bool:
        """Takes a line; returns False after the end of the report."""
        if not line.text.strip():
            self._blank += 1
            return self._blank < 4  # noqa: PLR2004
        self._blank = 0
        gpu = _GPU.match(line.text.strip())
        if gpu:
            self._above = []
            self.begin(gpu["bus"], line)
            return True
        found = _KEY.match(line.text)
        if found is None or (self._index >= 0 and not found["indent"]):
            return False
        self._key(len(found["indent"]), found["key"], found["value"], line)
        return True

    def begin(self, bus: str, line: Line) -> None:
        """Begins the next GPU."""
        self._position += 1
        address = bdf(bus)
        known = known_index(address, self._into)
        number = known if known is not None else self._position if self._numbered else None
        self._index = place_of(address) if number is None else number
        name = f"gpus.{self._index}"
        if number is not None:
            self._into.state(Gpus, f"{name}.index", number, line)
        self._into.state(Gpus, f"{name}.pci_bdf", address, line)
        self._into.state(Gpus, f"{name}.error", None, line)

    def _key(self, indent: int, key: str, value: str | None, line: Line) -> None:
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        path = "/".join([*(name for _, name in self._above), key])
        if value is None:
            self._above.append((indent, key))
        else:
            self.value(path, value, line)

    def value(self, path: str, value: str, line: Line) -> None:
        """Takes a value; its path consists of sections and key (`Ecc Mode/Current`)."""
        if self._index < 0:
            self._driver(path, value, line)
        elif path == "Product Name":
            state_gpu(self._index, value, line, self._into)
        elif counter := _VOLATILE.search(path):
            number = values.number(value.strip())
            if number is not None:
                kind = self._index, "uncorrected" if counter["bad"] else "corrected"
                count, at = self._errors.get(kind, (0, line))
                self._errors[kind] = (count + number, line if number else at)
        elif (reason := _REASON.match(path)) and reason["name"] in _REASONS:
            if value.strip() in ("Active", "Not Active"):
                told = self._reasons.setdefault(self._index, {})
                told[reason["name"]] = (value.strip() == "Active", line)
        elif path in _FIELDS:
            field, read = _FIELDS[path]
            known = read(value.strip())
            if known is not None:
                self._into.state(Gpus, f"gpus.{self._index}.{field}", known, line)
            if field == "gsp_version" and known is not None:
                self._into.state(Gpus, f"gpus.{self._index}.gsp_enabled", value=True, line=line)

    def finish(self) -> None:
        """States what follows from several lines together."""
        for index, told in self._reasons.items():
            if not told.keys() >= _DECISIVE:
                continue
            active = [name for name, (on, _) in told.items() if on]
            place = max(active, key=lambda name: _REASONS[name], default="Idle")
            bits = sum(int(_REASONS[name]) for name in active)
            self._into.state(Gpus, f"gpus.{index}.health.event_reasons", bits, told[place][1])
        for (index, kind), (count, line) in self._errors.items():
            self._into.state(Gpus, f"gpus.{index}.health.ecc_volatile_{kind}", count, line)

    def _driver(self, key: str, value: str, line: Line) -> None:
        # driver 610 names the parts of the driver that have these versions
        key = {"KMD Version": "Driver Version", "CUDA UMD Version": "CUDA Version"}.get(key, key)
        if key == "Driver Version" and re.fullmatch(r"\d{3}\.[\d.]+", value):
            state_driver(value, line, self._into)
        elif key == "CUDA Version" and re.fullmatch(r"\d{1,2}\.\d{1,2}", value):
            major, minor = value.split(".")
            self._into.state(Nvml, "cuda_version", 1000 * int(major) + 10 * int(minor), line)
            self._into.state(NvidiaSmi, "cuda_missing", None, line)
        elif key == "CUDA Version" and value in ("ERR!", "N/A", "Not Found"):
            self._into.state(NvidiaSmi, "cuda_missing", value, line)
        elif key == "Attached GPUs" and value.isdecimal() and len(value) < 4:  # noqa: PLR2004
            self._into.state(Gpus, "count", int(value), line)


READER = Reader("nvidia-smi -q", _read)
