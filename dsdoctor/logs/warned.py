"""Warnings after which a program went on, and what an exception below them owes to them."""

from __future__ import annotations

import re

from dsdoctor.logs.echoes import is_opaque
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit

#: A line of Python's `warnings`, of a logger at the level of a warning, or of torch's C++.
WARNING = re.compile(
    r"(?:^|[\s\].:])\w{0,40}Warning: |(?:^|[\s\[|-])WARNING(?:[\]\s:|-]|$)"
    r"|^\[W\d{0,4} ?[^\]]{0,120}\.(?:cpp|cc|h):\d+\]",
)
#: Words of an exception that speaks of an accelerator, so that a warning about one may explain it.
DEVICE = re.compile(
    r"(?i)\bcuda|\bgpu|nvidia|nccl|\bnvml|\bdriver|\bdevices?\b|accelerator|bf16|fp16|bfloat16"
    r"|half|triton|cudnn|cublas|\bhip\b|rocm",
)
#: The module that is missing.
NAME = re.compile(r"['\"](?P<name>[\w.]{2,200})['\"]")


def is_warning(hit: Hit) -> bool:
    """Whether the line of a hit is a warning, behind which its program goes on."""
    return WARNING.search(hit.text) is not None


def is_unrelated(hit: Hit, error: Error) -> bool:
    """Whether a hit is only a warning, and an exception below it speaks of something else.

    What is opaque may follow from any warning, but a missing module is missing for its name. An
    exception without words may follow from anything.
    """
    if hit.line >= error.begun or not error.message or not is_warning(hit):
        return False
    text = f"{error.type}: {error.message}"
    if error.type == "ModuleNotFoundError":
        return not any(name in hit.text for name in NAME.findall(error.message))
    return not is_opaque(error) and not DEVICE.search(text)
