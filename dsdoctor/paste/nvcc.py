"""`nvcc --version`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste.collect_env import state_nvcc
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_RELEASE = re.compile(r"\s*Cuda compilation tools, release (\d{1,2}\.\d{1,2}), V\d")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for line in lines:
        found = _RELEASE.match(line.text)
        if found:
            into.recognized()
            state_nvcc(found[1], line, into)


READER = Reader("nvcc --version", _read)
