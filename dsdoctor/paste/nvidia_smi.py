"""`nvidia-smi`: the table of every driver since 384, and what it prints when it fails.

Current usage (memory, processes, utilization) is not read: a paste is as often from during the
failed run as from before it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.facts.gpu import ComputeMode, Gpus, Nvml
from dsdoctor.model.facts.machine import NvidiaSmi
from dsdoctor.paste.collect_env import state_driver
from dsdoctor.paste.lines import Line
from dsdoctor.paste.memory_in_use import InUse, notice_full
from dsdoctor.paste.reader import NUMBERLESS, Reader, state_gpu
from dsdoctor.paste.statements import Statements

#: `CUDA Version` is printed since driver 410, `KMD Version` since 590.
_HEAD = re.compile(
    r"NVIDIA-SMI \d{3}\.[\d.]{1,12}.{0,20}?"
    r"(?:Driver|KMD) Version: (?P<driver>\d{3}\.\d{1,4}(?:\.\d{1,4})?)"
    r"(?:\s+CUDA (?:UMD )?Version: (?:(?P<cuda>\d{1,2}\.\d{1,2})|(?P<none>ERR!|N/A|Not Found)))?"
)
#: `nvidia-smi --version`, since driver 545: the driver and its CUDA, each in a line.
_VERSIONS = re.compile(r"\s*NVIDIA-SMI version\s*: \d{3}\.")
_DRIVER = re.compile(r"\s*(?:DRIVER|KMD) version\s*: (?P<driver>\d{3}\.\d{1,4}(?:\.\d{1,4})?)\s*$")
_CUDA = re.compile(r"\s*CUDA (?:UMD )?Version\s*: (?P<major>\d{1,2})\.(?P<minor>\d{1,2})\s*$")
_BORDER = re.compile(r"\s*[+|][-=+]{10,}")
#: The first of the two or three lines of a GPU, in its three cells.
_NAME = re.compile(
    r"(?P<index>\d{1,3})\s+(?P<name>\S.*?)(?:\s+(?P<persistence>On|Off|N/A|TCC|WDDM|MCDM))?$"
)
_BUS = re.compile(
    r"(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)(?:\s+(?:On|Off|N/A))?$"
)
_MEMORY = re.compile(r"(?:(?P<used>\d{1,7})|\S+)MiB\s*/\s*(?P<total>\d{1,7})MiB$")
_MODES = {
    "Default": ComputeMode.DEFAULT,
    "E. Process": ComputeMode.EXCLUSIVE_PROCESS,
    "E. Thread": ComputeMode.EXCLUSIVE_THREAD,
    "Prohibited": ComputeMode.PROHIBITED,
}
#: What it prints instead of a table: the words, NVML's code for it, the code's name.
_FAILURES = (
    (
        re.compile(
            r"(?:NVIDIA-SMI has failed because it )?couldn.t communicate with the NVIDIA driver"
        ),
        (9, "DRIVER_NOT_LOADED", "Driver Not Loaded"),
    ),
    (
        re.compile(r"Failed to initialize NVML: Driver/library version mismatch"),
        (18, "LIB_RM_VERSION_MISMATCH", "RM has detected an NVML/RM version mismatch."),
    ),
    (
        re.compile(r"(?i)Failed to initialize NVML:? (?:Unknown Error|Insufficient Permissions)"),
        (999, "UNKNOWN", "Unknown Error"),
    ),
    (
        re.compile(r"Failed to initialize NVML: Driver Not Loaded"),
        (9, "DRIVER_NOT_LOADED", "Driver Not Loaded"),
    ),
)
#: What it prints if the driver works and a GPU does not: the words and their code. Up to driver 550
#: it prints only the address, later versions the index before it, or only the index.
_HANDLE = re.compile(
    r"Unable to determine the device handle for (?:GPU|gpu) ?"
    r"(?=\w)(?:(?P<index>\d{1,2}):\s+)?"
    r"(?:(?P<bus>[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d):\s+)?"
    r"(?P<word>GPU is lost|Unknown Error|Not Found|GPU requires reset)"
)
_HANDLE_CODES = {
    "GPU is lost": (15, "GPU_IS_LOST"),
    "GPU requires reset": (16, "RESET_REQUIRED"),
    "Not Found": (6, "NOT_FOUND"),
    "Unknown Error": (999, "UNKNOWN"),
}
#: Below the table, since driver 450, if MIG is enabled on a GPU and no GPU has a MIG device.
_NO_MIG = re.compile(r"No MIG devices found\b")
#: The head of that table, and the first line of a MIG device: its GPU, then three more numbers.
_MIG_TABLE = re.compile(r"\s*[|│]\s*MIG devices:")
_MIG_ROW = re.compile(r"\s*[|│]\s+(?P<gpu>\d{1,3})\s+\d{1,3}\s+\d{1,3}\s+\d{1,3}\s*[|│]")
#: More lines than that table has for 16 GPUs of seven devices.
_MIG_LINES = 400
_NO_DEVICES = re.compile(r"\s*No devices were found\s*$")
_MOST_GPUS = 64


def _read(lines: Sequence[Line], into: Statements) -> None:
    place = 0
    while place < len(lines):
        line = lines[place]
        head = _HEAD.search(line.text)
        if head:
            place = _table(lines, place, head, into)
            continue
        if _row(line) is not None:  # the head of the table was cut off
            into.recognized()
            place = _rows(lines, place, into)
            continue
        if _VERSIONS.match(line.text):
            _versions(lines[place + 1 : place + 4], into)
        if _MIG_TABLE.match(line.text):
            _mig_devices(lines, place + 1, into)
        _failure(line, into)
        place += 1


def _versions(lines: Sequence[Line], into: Statements) -> None:
    for line in lines:
        driver, cuda = _DRIVER.match(line.text), _CUDA.match(line.text)
        if driver:
            state_driver(driver["driver"], line, into)
        elif cuda:
            number = 1000 * int(cuda["major"]) + 10 * int(cuda["minor"])
            into.state(Nvml, "cuda_version", number, line)


def _mig_devices(lines: Sequence[Line], place: int, into: Statements) -> None:
    """States that GPUs with MIG have no MIG device, if the table is complete and lists others."""
    listed: set[int] = set()
    closed = False
    for line in lines[place : place + _MIG_LINES]:
        if _MIG_TABLE.match(line.text):
            break
        row = _MIG_ROW.match(line.text)
        if row:
            listed.add(int(row["gpu"]))
        elif not line.text.lstrip().startswith(("|", "│", "+")):
            break
        closed = line.text.lstrip().startswith("+-")
    else:
        closed = False
    for index in range(_MOST_GPUS if closed and listed else 0):
        if index not in listed and into.value(Gpus, f"gpus.{index}.mig_mode"):
            into.state(Gpus, f"gpus.{index}.mig_devices", [], lines[place - 1])


def _failure(line: Line, into: Statements) -> None:
    for pattern, (code, name, message) in _FAILURES:
        found = pattern.search(line.text)
        if found:
            permission = "insufficient" in line.text.lower()
            error = {
                "code": 4 if permission else code,
                "name": "NO_PERMISSION" if permission else name,
                "message": "Insufficient Permissions" if permission else message,
                "call": "nvmlInit",
            }
            into.state(Nvml, "error", error, line)
            into.state(NvidiaSmi, "error", found.group(), line)  # a title may quote the message
            into.state(NvidiaSmi, "timed_out", False, line)
            for path in ("gpus[]", "count", "stopped_at"):
                into.withdraw(Gpus, path, "collect_env")  # it listed no GPU because it failed
            return
    lost = _HANDLE.search(line.text)
    if lost and (lost["index"] or lost["bus"]):
        code, name = _HANDLE_CODES[lost["word"]]
        error = {"code": code, "name": name, "message": lost["word"], "call": "nvidia-smi"}
        number = _place(lost)
        if lost["index"]:
            into.state(Gpus, f"gpus.{number}.index", number, line)
        if lost["bus"]:
            into.state(Gpus, f"gpus.{number}.pci_bdf", bdf(lost["bus"]), line)
        into.state(Gpus, f"gpus.{number}.error", error, line)
    elif _NO_MIG.search(line.text):
        for index in range(_MOST_GPUS):
            if into.value(Gpus, f"gpus.{index}.mig_mode"):
                into.state(Gpus, f"gpus.{index}.mig_devices", [], line)
    elif _NO_DEVICES.match(line.text):
        into.state(Gpus, "gpus[]", None, line)
        into.state(Gpus, "count", 0, line)
        into.state(Gpus, "stopped_at", None, line)
        into.state(Nvml, "error", None, line)  # without a driver it prints something else


def _place(lost: re.Match[str]) -> int:
    """The index of a GPU that does not respond, or a key made from its address."""
    if lost["index"]:
        return int(lost["index"])
    return place_of(bdf(lost["bus"]))


def _table(lines: Sequence[Line], place: int, head: re.Match[str], into: Statements) -> int:
    """Reads one table; returns the line after it."""
    line = lines[place]
    into.recognized()
    state_driver(head["driver"], line, into)
    if head["cuda"]:
        major, minor = head["cuda"].split(".")
        into.state(Nvml, "cuda_version", 1000 * int(major) + 10 * int(minor), line)
    if head["cuda"] or head["none"]:
        into.state(NvidiaSmi, "cuda_missing", head["none"], line)
    into.state(NvidiaSmi, "error", None, line)
    into.state(NvidiaSmi, "timed_out", False, line)
    return _rows(lines, place + 1, into)


def _rows(lines: Sequence[Line], place: int, into: Statements) -> int:
    """Reads the rows of a table; returns the line after it."""
    table = _Table(into)
    at = place
    while at < min(len(lines), place + 400):
        if lines[at].fence or _HEAD.search(lines[at].text) or table.take(lines[at]):
            break
        at += 1
    notice_full("nvidia-smi", table.in_use, into)
    return at


def _cells(line: Line) -> list[str]:
    return [cell.strip() for cell in line.text.strip().strip("|│").split("|")]


#: In the tables of hl-smi and npu-smi, which look the same: a product, and the number of a chip.
_OF_OTHERS = re.compile(r"HL-|\d{1,3}$")


def _row(line: Line) -> tuple[re.Match[str], re.Match[str], str] | None:
    """The first of the lines of a GPU: its name, its address and the cell of ECC."""
    if "|" not in line.text[:40]:
        return None
    cells = _cells(line)
    if len(cells) != 3:  # noqa: PLR2004
        return None
    name, bus = _NAME.match(cells[0]), _BUS.match(cells[1])
    if name and _OF_OTHERS.match(name["name"]):
        return None
    return (name, bus, cells[2]) if name and bus else None


class _Table:
    """The rows of one table: each GPU has two lines, since driver 450 three.

    Attributes:
        in_use: memory of the GPUs.
    """

    def __init__(self, into: Statements) -> None:
        self.in_use: list[InUse] = []
        self._into = into
        self._firsts: dict[int, Line] = {}
        self._index = -1
        self._row = 0
        self._closed = False

    def take(self, line: Line) -> bool:
        """Takes a line; returns True for the first one after the table."""
        text = line.text.strip()
        if _BORDER.match(text):
            if self._closed:
                self._complete()
                return True
            self._closed = bool(self._firsts)
            return False
        if not text:
            return False
        cells = _cells(line)
        if len(cells) != 3:  # noqa: PLR2004  # another table, or the end of the table
            if self._closed and ("Processes:" in text or "MIG devices:" in text):
                self._complete()
            return bool(self._firsts)
        row = _row(line)
        if row is not None:
            self._start(*row, line)
        elif self._index >= 0:
            self._row += 1
            self._further(cells, line)
        self._closed = False
        return False

    def _say(self, field: str, value: Any, line: Line) -> None:
        self._into.state(Gpus, f"gpus.{self._index}.{field}", value, line)

    def _start(self, name: re.Match[str], bus: re.Match[str], ecc: str, line: Line) -> None:
        self._index, self._row = int(name["index"]), 1
        self._firsts.setdefault(self._index, line)
        state_gpu(self._index, name["name"] if "ERR!" not in line.text else "", line, self._into)
        self._say("pci_bdf", bdf(bus["bus"]), line)
        if name["persistence"] in ("On", "Off"):
            self._say("persistence_mode", name["persistence"] == "On", line)
        if ecc.isdecimal():
            self._say("ecc_mode", True, line)
            self._say("health.ecc_volatile_uncorrected", int(ecc), line)
        elif ecc in ("Off", "N/A"):
            self._say("ecc_mode", False if ecc == "Off" else None, line)

    def _further(self, cells: list[str], line: Line) -> None:
        if self._row == 2:  # noqa: PLR2004  # the second line of a GPU
            memory = _MEMORY.match(cells[1])
            if memory:
                self._say("memory_total_bytes", int(memory["total"]) << 20, line)
                if memory["used"]:
                    name, used, total = f"GPU {self._index}", memory["used"], memory["total"]
                    self.in_use.append(InUse(name, int(used), int(total), "MiB", line))
            for word, mode in _MODES.items():
                if cells[2].endswith(word):
                    self._say("compute_mode", int(mode), line)
            if "ERR!" not in line.text:
                self._say("error", None, line)
        elif not cells[0] and cells[2].rstrip("*") in ("Enabled", "Disabled", "N/A"):
            mig = {"Enabled": True, "Disabled": False}.get(cells[2].rstrip("*"))
            if cells[2].endswith("*"):  # it shows the mode after the next reset
                self._say("mig_mode_pending", mig, line)
                mig = not mig
            self._say("mig_mode", mig, line)
            if not mig:
                self._say("mig_devices", [], line)

    def _complete(self) -> None:
        """States that the table is complete: what follows it shows that no row was cut off."""
        if sorted(self._firsts) == list(range(len(self._firsts))):
            self._into.state(Gpus, "gpus[]", None, self._firsts[0])
            self._into.state(Gpus, "count", len(self._firsts), self._firsts[0])
            self._into.state(Gpus, "stopped_at", None, self._firsts[0])


def place_of(address: str) -> int:
    """The place of a GPU of which only the PCI address is known.

    >>> place_of("0000:a1:00.0") > place_of("0000:21:00.0") >= 1000
    True
    """
    return NUMBERLESS + int(address.replace(":", "").replace(".", ""), 16)


def known_index(address: str, into: Statements) -> int | None:
    """The index of the GPU at a PCI address, if a table of the text lists it."""
    return next(
        (
            index
            for index in range(_MOST_GPUS)
            if into.value(Gpus, f"gpus.{index}.pci_bdf") == address
        ),
        None,
    )


def bdf(bus: str) -> str:
    """A PCI address as Linux writes it.

    >>> bdf("00000000:1B:00.0")
    '0000:1b:00.0'
    """
    domain, rest = bus.lower().split(":", 1)
    return f"{domain[-4:].zfill(4)}:{rest}"


READER = Reader("nvidia-smi", _read)
