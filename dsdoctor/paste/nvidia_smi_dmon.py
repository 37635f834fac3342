"""`nvidia-smi dmon` and `pmon`: a line for each GPU or process, and second.

Current usage is not read, as in `nvidia_smi`, but error counters are. According to nvidia-smi's
manual, these columns count ECC errors since the GPU was made (`sbecc`, `dbecc`) and PCIe replays
(`pci`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.paste.lines import Line
from dsdoctor.paste.nvidia_smi_values import number
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

#: The names of the columns, and below them their units; dates and times may come first.
_HEAD = re.compile(
    r"#\s?(?:Date\s+Time\s+)?gpu\s+(?P<names>(?:pwr|pid|sm|temp|gtemp|mclk|fb|pviol|pci|rxpci|sbecc)\b.*)"
)
_ROW = re.compile(r"\s*(?:\d{8}\s+[\d:]{8}\s+)?(?P<gpu>\d{1,3})\s+(?P<values>[-\d].*)")
_FIELDS = {
    "sbecc": "health.ecc_aggregate_corrected",
    "dbecc": "health.ecc_aggregate_uncorrected",
    "pci": "pcie.replay_counter",
}


def _read(lines: Sequence[Line], into: Statements) -> None:
    names: list[str] = []
    last: dict[tuple[int, str], tuple[int, Line]] = {}
    seen: dict[int, Line] = {}
    for line in lines:
        head = _HEAD.match(line.text.strip())
        if head:
            names = head["names"].split()
            into.recognized()
            continue
        if not names or line.text.lstrip().startswith("#"):
            continue
        row = _ROW.fullmatch(line.text)
        values = row["values"].split() if row else []
        if row is None or len(values) < len(names):
            names = []
            continue
        index = int(row["gpu"])
        seen.setdefault(index, line)
        for name, text in zip(names, values, strict=False):
            value = number(text)
            if name in _FIELDS and value is not None:
                last[index, _FIELDS[name]] = value, line
    for index, line in seen.items():
        into.state(Gpus, f"gpus.{index}.index", index, line)
    for (index, field), (value, line) in last.items():
        if not into.states(Gpus, f"gpus.{index}.{field}"):
            into.state(Gpus, f"gpus.{index}.{field}", value, line)


READER = Reader("nvidia-smi dmon", _read)
