"""What a log says of the variables that the job was started with.

NCCL prints a variable that it found with `NCCL_DEBUG=INFO`, DeepSpeed's launcher those whose names
begin with NCCL, and whether it found `CUDA_VISIBLE_DEVICES`. A variable that two ranks report
differently is not stated. Sources: NCCL src/misc/param.cc, transport/net_ib.cc; deepspeed
launcher/launch.py, launcher/runner.py, which named `CUDA_VISIBLE_DEVICES` before it named any
accelerator's variable `VISIBLE_DEVICES`. Read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.environment import allowed

_FORMS = (
    re.compile(
        r"NCCL INFO (?:ENV/Plugin: )?(?P<name>NCCL_[A-Z0-9_]{1,40}) set (?:by environment )?to"
        r" (?P<value>\S{1,200})\s*$"
    ),
    re.compile(
        r"\[launch\.py:\d{1,4}:main\] \d{1,4} (?P<name>NCCL_[A-Z0-9_]{1,40})=(?P<value>\S{1,200})$"
    ),
    re.compile(
        r"\bDetected (?P<name>CUDA_VISIBLE_DEVICES)=(?P<value>[\w,-]{1,200}?)"
        r"(?:: setting| but ignoring) "
    ),
)
#: What the launcher prints and no job sets: images of NVIDIA do.
_OF_IMAGE = frozenset({"NCCL_VERSION"})


#: Newer releases name no variable; for CUDA it is the one of CUDA.
_VISIBLE = "Detected VISIBLE_DEVICES="
_CUDA = "Setting ds_accelerator to cuda"


def _read(lines: Sequence[Line], into: Statements) -> None:
    cuda = any(_CUDA in line.text for line in lines)
    found: dict[str, dict[str, Line]] = {}
    for line in lines:
        if "NCCL" not in line.text and "VISIBLE_DEVICES" not in line.text:
            continue
        text = line.text.replace(_VISIBLE, "Detected CUDA_VISIBLE_DEVICES=") if cuda else line.text
        for form in _FORMS:
            said = form.search(text)
            if said and allowed(said["name"]) and said["name"] not in _OF_IMAGE:
                # a number is followed by a full stop
                value = re.sub(r"^(-?\d{1,20})\.$", r"\1", said["value"])
                found.setdefault(said["name"], {}).setdefault(value, line)
    for name, values in found.items():
        if len(values) == 1:
            [(value, line)] = values.items()
            into.state(Environment, f"variables.{name}", value, line)


READER = Reader("a log of NCCL or DeepSpeed", _read)
