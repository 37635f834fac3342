"""`nvidia-smi -q`: one block for each GPU, keys indented below their section.

Only what describes the GPU is read, not what is in use at that moment (see `nvidia_smi`).

A block has no index. The blocks of a whole report are in order of the indices; the block of one GPU
(`-i 5`), or one that somebody cut out, is known by its PCI address only.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import NvidiaSmi
from dsdoctor.paste import nvidia_smi_values as values
from dsdoctor.paste.collect_env import state_driver
from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi import bdf, known_index, place_of
from dsdoctor.paste.nvidia_smi_fields import DECISIVE, FIELDS, REASON, REASONS, VOLATILE
from dsdoctor.paste.reader import Reader, state_gpu
from dsdoctor.paste.statements import Statements

_TITLE = re.compile(r"\s*=+NVSMI LOG=+\s*$")
GPU_LINE = re.compile(r"GPU (?P<bus>[0-9A-Fa-f]{8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.\d)$")
KEY_LINE = re.compile(r"(?P<indent>\s*)(?P<key>\S.*?)(?:\s+: (?P<value>.*?))?\s*$")
#: The first key of a block, by which one without the title above it is recognized.
_FIRST = re.compile(r"\s+Product Name\s+: \S")
_ATTACHED = re.compile(r"Attached GPUs\s+: (?P<count>\d{1,3})\s*$")
#: The lines between the title and the GPUs, also where the title was cut off.
_DRIVER = re.compile(r"(?:Driver|KMD) Version\s+: \d{3}\.[\d.]+\s*$")
#: Lines from there to the number of GPUs, with a blank one.
_HEAD = 5
_MINOR = re.compile(r"\s+Minor Number\s+: (?P<number>\d{1,3})\s*$")


#: Products that are virtual GPUs: the type that the host assigned ends the name, `-8C`, `-1-5CME`.
_VGPU_TYPE = re.compile(r"-\d{1,3}(?:-\d{1,3})?[ABCQ]\d?(?:ME)?$")
#: A license that a virtual GPU does without; a whole GPU in a virtual machine is not restricted.
_RESTRICTED = re.compile(r"Unlicensed \(Restricted\)")


def _read(lines: Sequence[Line], into: Statements) -> None:
    whole_reports(lines, into)


def whole_reports(
    lines: Sequence[Line], into: Statements | None = None
) -> Sequence[tuple[int, int]]:
    """Reads reports, and blocks of GPUs that were cut out of one.

    Args:
        lines: the text.
        into: receives what they state; None if only their places matter.

    Returns:
        Their first lines and the lines after their last.
    """
    into = Statements() if into is None else into
    found: list[tuple[int, int]] = []
    place = 0
    while place < len(lines):
        start = place
        if _TITLE.match(lines[place].text):
            place = _log(lines, place + 1, into, titled=True)
            found.append((start, place + 1))
        elif (head := _begins_head(lines, place)) or _begins_block(lines, place):
            place = _log(lines, place, into, titled=head)
            found.append((start, place + 1))
        place += 1
    return found


def _begins_block(lines: Sequence[Line], place: int) -> bool:
    """Whether this is the first line of a block that has lost the title above it."""
    below = lines[place + 1].text if place + 1 < len(lines) else ""
    return bool(_FIRST.match(below) and GPU_LINE.match(lines[place].text.strip()))


def _begins_head(lines: Sequence[Line], place: int) -> bool:
    """Whether this is the driver's line of a report that has lost the title above it."""
    if not _DRIVER.match(lines[place].text):
        return False
    return any(_ATTACHED.match(line.text) for line in lines[place + 1 : place + _HEAD])


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
        if GPU_LINE.match(line.text.strip()):
            blocks += 1
        elif count := _ATTACHED.match(line.text):
            attached = int(count["count"])
        elif minor := _MINOR.match(line.text):
            minors.append(int(minor["number"]))
    if titled and (attached is None or blocks >= attached):
        return True
    return bool(minors) and minors == list(range(blocks))[: len(minors)]


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
        self._virtual: dict[int, Line] = {}

    def take(self, line: Line) -> bool:
        """Takes a line; returns False after the end of the report."""
        if not line.text.strip():
            self._blank += 1
            return self._blank < 4  # noqa: PLR2004
        self._blank = 0
        gpu = GPU_LINE.match(line.text.strip())
        if gpu:
            self._above = []
            self.begin(gpu["bus"], line)
            return True
        found = KEY_LINE.match(line.text)
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

    def begin_nameless(self, index: int, line: Line) -> None:
        """Begins a GPU of which the report shows neither index nor address.

        Args:
            index: where its values are stated.
            line: the first line about it.
        """
        self._index = index
        self._into.state(Gpus, f"gpus.{index}.error", None, line)

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
            if _VGPU_TYPE.search(value):
                self._virtual[self._index] = line
        elif counter := VOLATILE.search(path):
            number = values.number(value.strip())
            if number is not None:
                kind = self._index, "uncorrected" if counter["bad"] else "corrected"
                count, at = self._errors.get(kind, (0, line))
                self._errors[kind] = (count + number, line if number else at)
        elif (reason := REASON.match(path)) and reason["name"] in REASONS:
            if value.strip() in ("Active", "Not Active"):
                told = self._reasons.setdefault(self._index, {})
                told[reason["name"]] = (value.strip() == "Active", line)
        elif path in FIELDS:
            field, read = FIELDS[path]
            known = read(value.strip())
            if known is not None:
                self._into.state(Gpus, f"gpus.{self._index}.{field}", known, line)
            if field == "licensed" and _RESTRICTED.match(value.strip()):
                self._virtual.setdefault(self._index, line)
            if field == "gsp_version" and known is not None:
                self._into.state(Gpus, f"gpus.{self._index}.gsp_enabled", value=True, line=line)

    def finish(self) -> None:
        """States what follows from several lines together."""
        for index, told in self._reasons.items():
            if not told.keys() >= DECISIVE:
                continue
            active = [name for name, (on, _) in told.items() if on]
            place = max(active, key=lambda name: REASONS[name], default="Idle")
            bits = sum(int(REASONS[name]) for name in active)
            self._into.state(Gpus, f"gpus.{index}.health.event_reasons", bits, told[place][1])
        for (index, kind), (count, line) in self._errors.items():
            self._into.state(Gpus, f"gpus.{index}.health.ecc_volatile_{kind}", count, line)
        for index, line in self._virtual.items():
            name = f"gpus.{index}.virtualization"
            if not self._into.states(Gpus, name):  # the mode itself was cut out
                self._into.state(Gpus, name, "VGPU", line)

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
