"""xFormers' warning that it was built for another torch: `(you have 2.1.0+cpu)` is this machine's.

Source: xformers/_cpp_lib.py, read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import Patient, TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_python, state_torch
from dsdoctor.paste.statements import Statements

_TORCH = re.compile(
    r"\s*PyTorch +\S{1,40} with (?:CUDA|HIP) \S{1,20} \(you have (?P<version>\d[\w.+]{2,40})\)"
)
_PYTHON = re.compile(r"\s*Python +\S{1,20} \(you have (?P<version>3\.\d{1,2}\.\d{1,2})\)")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for line in lines:
        torch, python = _TORCH.match(line.text), _PYTHON.match(line.text)
        if torch and not into.states(TorchBuild, "version"):
            state_torch(torch["version"], line, into)
        elif python and not into.states(Patient, "version"):
            state_python(python["version"], line, into)


READER = Reader("xFormers' warning", _read)
