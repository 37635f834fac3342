"""Parts of `nvidia-smi -q` that people cut out: a section, or the lines that `grep` let pass.

A section is known by its heading and by a key that it has; a single key, by words that nothing else
prints. Parts that name no GPU are those of the GPUs that the text lists, if there are as many of
them. If it lists none, each time that a key comes again another GPU begins.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi_fields import states
from dsdoctor.paste.nvidia_smi_query import GPU_LINE, KEY_LINE, QueryReport, whole_reports
from dsdoctor.paste.reader import NUMBERLESS, Reader
from dsdoctor.paste.statements import Statements

#: Sections with keys that are read, and what is above them in a whole report.
_SECTIONS = {
    "MIG Mode": "",
    "ECC Mode": "",
    "Ecc Mode": "",
    "GPU Virtualization Mode": "",
    "vGPU Software Licensed Product": "",
    "GRID Licensed Product": "",
    "GPU Reset Status": "",
    "PCI": "",
    "GPU Link Info": "PCI/",
    "FB Memory Usage": "",
    "ECC Errors": "",
    "Ecc Errors": "",
    "Volatile": "ECC Errors/",
    "Aggregate": "ECC Errors/",
    "Retired Pages": "",
    "Remapped Rows": "",
    "Clocks Event Reasons": "",
    "Clocks Throttle Reasons": "",
    "Power Readings": "",
    "GPU Power Readings": "",
    "Fabric": "",
}
#: Sections of which nothing is read, as they are about that moment, with some of their keys.
_OF_THE_MOMENT = {
    "Temperature": ("GPU Current Temp", "GPU Shutdown Temp", "GPU T.Limit Temp"),
    "Utilization": ("Gpu", "GPU", "Memory"),
    "BAR1 Memory Usage": ("Total", "Used"),
    "Conf Compute Protected Memory Usage": ("Total", "Used"),
    "Clocks": ("Graphics", "SM"),
    "Max Clocks": ("Graphics", "SM"),
    "Applications Clocks": ("Graphics",),
    "Processes": ("GPU instance ID", "Process ID"),
    "Module Power Readings": ("Power Draw", "Average Power Draw"),
}
#: Keys that are unmistakable on their own, as a search for them prints them, with their sections.
_ALONE = {
    "License Status": "vGPU Software Licensed Product/",
    "Remapping Failure Occurred": "Remapped Rows/",
    "Pending Page Blacklist": "Retired Pages/",
    "Channel Repair Pending": "ECC Errors/",
    "TPC Repair Pending": "ECC Errors/",
    "SRAM Threshold Exceeded": "ECC Errors/Aggregate/",
    "GPU Recovery Action": "",
    "Persistence Mode": "",
    "Compute Mode": "",
    "GSP Firmware Version": "",
}
#: The tool's own spaces; people who write of such a value leave one or none.
_PADDED = re.compile(r"\S\s{2,}: ")
#: The first two lines of a block whose own first line was cut off.
_PRODUCT = re.compile(r"\s*Product Name\s+: \S")
_BRAND = re.compile(r"\s*Product (?:Brand|Architecture)\s+: \S")
#: More lines than the reports of sixteen GPUs have.
_LONGEST = 5000
#: GPUs without a name of their own are numbered from here, after all that have a PCI address.
_NAMELESS = NUMBERLESS + (1 << 40)
_MOST_GPUS = 64


class _Value(NamedTuple):
    """A value, with its sections and key, and the PCI address in the line of its GPU, if any."""

    path: str
    value: str
    line: Line
    bus: str


def _read(lines: Sequence[Line], into: Statements) -> None:
    found: list[_Value] = []
    taken = {place for start, end in whole_reports(lines) for place in range(start, end)}
    place = 0
    while place < len(lines):
        if place in taken or not _may_begin(lines[place].text):
            place += 1
            continue
        part = _Part(lines, place, taken)
        values = part.values()
        if values or part.of_the_moment:
            into.recognized()
        found += values
        place = max(place + 1, part.end)
    _named([value for value in found if value.bus], into)
    _nameless([value for value in found if not value.bus], into)


def _may_begin(text: str) -> bool:
    """Whether a line may be the first of a part; most are not, and cost no more."""
    text = text.strip()
    key = text.partition(":")[0].rstrip()
    return (
        key in _ALONE
        or text in _SECTIONS
        or text in _OF_THE_MOMENT
        or key == "Product Name"
        or GPU_LINE.match(text) is not None
    )


class _Part:
    """The lines of a report from one of them on, if it begins a part.

    Attributes:
        end: the line after it.
        of_the_moment: it has sections of which nothing is read.
    """

    def __init__(self, lines: Sequence[Line], place: int, taken: set[int]) -> None:
        self._lines = lines
        self._taken = taken
        self._bus = ""
        self._block = _begins_block(lines, place)
        self._above: list[tuple[int, str]] = []
        self._flat = ""
        self._found: list[_Value] = []
        self.of_the_moment = False
        self.end = place

    def values(self) -> list[_Value]:
        """What the part states."""
        blank = 0
        for at in range(self.end, min(len(self._lines), self.end + _LONGEST)):
            line = self._lines[at]
            if at in self._taken or line.fence:
                break
            if not line.text.strip():
                blank += 1
                if blank > 1:
                    break
                continue
            if not self._take(line):
                break
            blank = 0
            self.end = at + 1
        return self._found

    def _take(self, line: Line) -> bool:
        gpu = GPU_LINE.match(line.text.strip())
        if gpu:
            self._bus, self._above, self._flat = gpu["bus"], [], ""
            return True
        found = KEY_LINE.match(line.text)
        if found is None:
            return False
        indent, key, value = len(found["indent"]), found["key"], found["value"]
        whole = indent > 0 and bool(self._bus or self._block)
        if value is None:
            return self._heading(indent, key, whole=whole)
        while self._above and self._above[-1][0] > indent:
            self._above.pop()
        if self._known(indent, key, value, line):
            return True
        return whole or bool(self._above and indent > self._above[0][0])

    def _heading(self, indent: int, key: str, *, whole: bool) -> bool:
        while self._above and self._above[-1][0] >= indent:
            self._above.pop()
        if not self._above:
            if not whole and key not in _SECTIONS and key not in _OF_THE_MOMENT:
                return False
            key = _SECTIONS.get(key, "") + key
        self._above.append((indent, key))
        self._flat = key
        return True

    def _known(self, indent: int, key: str, value: str, line: Line) -> bool:
        """Takes a key that is known at this place, also if all lines have lost their indent."""
        within = [name for at, name in self._above if at < indent]
        paths = ["/".join([*within, key])] if within or self._block else []
        if self._flat and not within:
            paths.append(f"{self._flat}/{key}")
        elif within:
            self._flat = ""
        if key in _ALONE and _PADDED.search(line.text):
            paths.append(_ALONE[key] + key)
        for path in paths:
            section, _, last = path.rpartition("/")
            if last in _OF_THE_MOMENT.get(section, ()):
                self.of_the_moment = True
                return True
            if states(path, value):
                self._found.append(_Value(path, value, line, self._bus))
                return True
        return False


def _begins_block(lines: Sequence[Line], place: int) -> bool:
    """Whether this is the first line below that of a GPU, which was cut off."""
    below = lines[place + 1].text if place + 1 < len(lines) else ""
    return bool(_PRODUCT.match(lines[place].text) and _BRAND.match(below))


def _named(values: Sequence[_Value], into: Statements) -> None:
    report = QueryReport(into, numbered=False)
    bus = ""
    for value in values:
        if value.bus != bus:
            bus = value.bus
            report.begin(bus, value.line)
        report.value(value.path, value.value, value.line)
    report.finish()


def _nameless(values: Sequence[_Value], into: Statements) -> None:
    """States values of GPUs of which the parts say neither number nor address."""
    groups: list[list[_Value]] = []
    for value in values:
        if not groups or value.path in {known.path for known in groups[-1]}:
            groups.append([])
        groups[-1].append(value)
    listed = [n for n in range(_MOST_GPUS) if into.states(Gpus, f"gpus.{n}.index")]
    if groups and listed and len(listed) != len(groups):
        first = groups[0][0].line.number
        into.notice(
            f"the part of `nvidia-smi -q` from line {first} on does not say which GPU it describes,"
            " and is not judged; add the line `GPU …` that is above it"
        )
        return
    places = listed or [_NAMELESS + n for n in range(len(groups))]
    if into.states(Gpus, "count") and not listed:
        return  # none, or all by their addresses
    report = QueryReport(into, numbered=False)
    for place, group in zip(places, groups, strict=False):
        report.begin_nameless(place, group[0].line)
        for value in group:
            report.value(value.path, value.value, value.line)
    report.finish()


READER = Reader("nvidia-smi -q, in part", _read)
