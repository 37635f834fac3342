"""torch's warning that it cannot initialize CUDA, which `collect_env` and other tools trigger.

Source: torch 1.7 to 2.13 torch/cuda/__init__.py and c10/cuda/CUDAFunctions.cpp, read 2026-11-23;
the text of the exception follows `CUDA initialization: `.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import TorchLive
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_WARNING = re.compile(r"UserWarning: CUDA initialization: (?P<text>\S.{0,600})")
_TRIGGERED = " (Triggered internally"
_CODE = re.compile(r"\bError (?P<code>\d{1,4}): ")


def _read(lines: Sequence[Line], into: Statements) -> None:
    """States why CUDA did not initialize, if another tool reported that torch sees no GPU."""
    if into.value(TorchLive, "cuda_ok") is not False:
        return
    for line in lines:
        found = _WARNING.search(line.text)
        if found is None:
            continue
        text = found["text"].partition(_TRIGGERED)[0].strip()
        into.state(TorchLive, "cuda_error", text, line)
        code = _CODE.search(text)
        if code:
            into.state(TorchLive, "cuda_error_code", int(code["code"]), line)
        return


READER = Reader("torch's warning", _read)
