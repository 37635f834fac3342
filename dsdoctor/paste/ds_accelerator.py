"""The line in which DeepSpeed reports that it found no GPU.

Source: deepspeed 0.10 to 0.19 accelerator/real_accelerator.py: after other accelerators it calls
`torch.cuda.device_count()` and `is_available()`, and uses the CPU if there is no device. It then
prints `(auto detect)`, or `(override)` if `DS_ACCELERATOR` decides.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import TorchLive
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_cuda_available
from dsdoctor.paste.statements import Statements

_CPU = re.compile(r"Setting ds_accelerator to cpu \(auto detect\)")
#: The variable hides the GPUs on purpose.
_HIDDEN = re.compile(r"CUDA_VISIBLE_DEVICES=(?:['\"]{2}|-1|\s|$)")


def _read(lines: Sequence[Line], into: Statements) -> None:
    if into.states(TorchLive, "cuda_ok") or any(_HIDDEN.search(line.text) for line in lines):
        return
    for line in lines:
        if _CPU.search(line.text):
            state_cuda_available("False", line, into)
            return


READER = Reader("DeepSpeed's choice of an accelerator", _read)
