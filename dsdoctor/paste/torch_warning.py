"""Two warnings of torch beside what tools print: why CUDA does not start, how many CPUs it may use.

Sources: torch 1.7 to 2.13 torch/cuda/__init__.py and c10/cuda/CUDAFunctions.cpp, read 2026-11-23;
the text of the exception follows `CUDA initialization: `, in a
build for ROCm `HIP initialization: `. torch 1.7 to 2.13
utils/data/dataloader.py, `_check_worker_number_rationality`, read 2026-11-28: the number is that of
`os.sched_getaffinity`, or of all CPUs if the warning says that `cpuset` does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.python import TorchLive
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.torch_live import error_number

_WARNING = re.compile(r"UserWarning: (?:CUDA|HIP) initialization: (?P<text>\S.{0,600})")
_WORKERS = re.compile(
    r"Our suggested max number of workers? in (?:the )?current system is (?P<cpus>\d{1,4})(?!\d)"
    r"(?! \(`cpuset`)"
)
_TRIGGERED = " (Triggered internally"


def _read(lines: Sequence[Line], into: Statements) -> None:
    _cuda(lines, into)
    if into.value(Gpus, "gpus.0.index") is None:
        return
    for line in lines:
        found = _WORKERS.search(line.text)
        if found:
            into.state(Resources, "cpus_usable", int(found["cpus"]), line)
            return


def _cuda(lines: Sequence[Line], into: Statements) -> None:
    """States why CUDA did not initialize, if another tool reported that torch sees no GPU."""
    if into.value(TorchLive, "cuda_ok") is not False:
        return
    for line in lines:
        found = _WARNING.search(line.text)
        if found is None:
            continue
        text = found["text"].partition(_TRIGGERED)[0].strip()
        into.state(TorchLive, "cuda_error", text, line)
        code = error_number(text)
        if code is not None:
            into.state(TorchLive, "cuda_error_code", code, line)
        return


READER = Reader("torch's warning", _read)
