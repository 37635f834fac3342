"""A report of `collect_env` that lost its line ends: mail programs and trackers join lines."""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste.lines import Line

#: Two keys that are on consecutive lines in every version of the report.
_JOINED = re.compile(
    r"Is debug build: \S+ CUDA used to build PyTorch: "
    r"|Is CUDA available: \S+ CUDA runtime version: "
)
#: Where its lines began: keys that cannot be part of a value.
_BEGINS = re.compile(
    r"\s+(?=(?:PyTorch version|Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch"
    r"|OS|GCC version|Clang version|CMake version|Libc version|Python version|Python platform"
    r"|Is CUDA available|CUDA runtime version|CUDA_MODULE_LOADING set to"
    r"|GPU models and configuration|GPU \d{1,3}|Nvidia driver version|cuDNN version"
    r"|HIP runtime version|MIOpen runtime version|Is XNNPACK available|CPU"
    r"|Versions of relevant libraries|vLLM Version|GPU Topology): ?"
    r"|\[(?:pip3?|conda)\] |```)"
)


def unfolded(lines: Sequence[Line]) -> Sequence[Line]:
    """The lines; one that contains several lines of such a report is split, with the same number.

    >>> text = "PyTorch version: 2.4.0 Is debug build: False CUDA used to build PyTorch: 12.1"
    >>> line = Line(7, f"a {text}")
    >>> [(part.number, part.text) for part in unfolded([line])][1:3]
    [(7, 'PyTorch version: 2.4.0'), (7, 'Is debug build: False')]
    """
    if not any(_JOINED.search(line.text) for line in lines):
        return lines
    found: list[Line] = []
    for line in lines:
        if not _JOINED.search(line.text):
            found.append(line)
            continue
        found += [
            Line(line.number, part, fence=part.startswith("```"))
            for part in _BEGINS.split(line.text)
        ]
    return found
