"""Lists of `- Key: value`, as `transformers env` and two similar commands print them.

The others are `accelerate env` and `llamafactory-cli env`. Sources, read 2026-11-22:
transformers/commands/env.py 4.0 to 5.23, accelerate/commands/env.py 0.5 to 1.15, LLaMA-Factory
src/llamafactory/extras/env.py 0.8 to 0.9.6.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.python import TorchBuild, TorchLive
from dsdoctor.model.units import GIB, whole
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import (
    EMPTY,
    state_cuda_available,
    state_deepspeed,
    state_gpu,
    state_package,
    state_platform,
    state_python,
    state_torch,
)
from dsdoctor.paste.statements import Statements

_ITEM = re.compile(
    r"\s*(?:[-*•]\s+)?`{0,2}(?P<key>[A-Za-z][\w` ()?/]{1,48}?)`{0,2}\s*:\s*(?P<value>.*)$"
)
#: What all three print after their own version: it sets their first line apart from a later one of
#: another tool's list.
_PLATFORM = re.compile(r"\s*(?:[-*•]\s+)?Platform\s*:")
#: Lines of the longest such list, with a config of accelerate in it.
_MOST = 60
#: Keys that contain a distribution, by what precedes `version`.
_NAMED = {
    "transformers", "accelerate", "peft", "trl", "datasets", "bitsandbytes", "safetensors", "numpy",
    "huggingface_hub", "tokenizers", "vllm", "llamafactory", "flash-attn",
}  # fmt: skip


def read(lines: Sequence[Line], into: Statements, first: re.Pattern[str]) -> None:
    """States the contents of the lists that begin with a given key.

    Args:
        lines: the lines of the whole text.
        into: receives the statements.
        first: matches the line with the tool's own version.
    """
    left = blank = 0
    for place, line in enumerate(lines):
        if first.match(line.text) and _PLATFORM.match(_next(lines, place)):
            left, blank = _MOST, 0
            into.recognized()
        elif not left:
            continue
        blank = 0 if line.text.strip() else blank + 1
        left = 0 if line.fence or blank > 1 else left - 1
        if left:
            state_item(line, into)


def state_item(line: Line, into: Statements) -> None:
    """States the content of one line of a list."""
    found = _ITEM.match(line.text)
    if found:
        value = found["value"].strip().strip("`")
        _item(found["key"].replace("`", "").strip(), value, line, into)


def _next(lines: Sequence[Line], place: int) -> str:
    """The next line that is not blank."""
    rest = (line.text for line in lines[place + 1 : place + 4])
    return next((text for text in rest if text.strip()), "")


def _item(key: str, value: str, line: Line, into: Statements) -> None:
    if EMPTY.match(value):
        return
    word = key.lower()
    if word.startswith("pytorch version"):
        _torch(key, value, line, into)
    elif word == "platform":
        state_platform(value, line, into)
    elif word == "python version":
        state_python(value, line, into)
    elif word == "deepspeed version":
        state_deepspeed(value, line, into)
        state_package("deepspeed", value, line, into)
    elif word == "system ram":
        _memory(value, line, into)
    elif word == "gpu type":
        _gpu(value, line, into)
    elif word == "gpu number" and 0 < (whole(value) or 0) < 1 << 10:
        into.state(Gpus, "count", whole(value), line)
        into.state(Gpus, "stopped_at", None, line)
    elif word.endswith(" version") and word.removesuffix(" version") in _NAMED:
        state_package(word.removesuffix(" version"), value, line, into)


def _torch(key: str, value: str, line: Line, into: Statements) -> None:
    """`2.1.2+cu121 (True)` of transformers and accelerate, `2.4.0+cu121 (GPU)` of LLaMA-Factory."""
    state_torch(value, line, into)
    state_package("torch", value, line, into)
    found = re.search(r"\((True|False|GPU|CUDA)\)", value)
    if found and ("GPU" in key.upper() or found[1] in ("GPU", "CUDA") or "?" in key):
        state_cuda_available("False" if found[1] == "False" else "True", line, into)


def _gpu(value: str, line: Line, into: Statements) -> None:
    """The name of torch's device 0, which is GPU 0 if all GPUs are of one kind."""
    if into.states(TorchBuild, "version") and into.states(TorchLive, "cuda_ok"):
        into.state(TorchLive, "devices.0.name", value, line)
    state_gpu(0, value, line, into)


def _memory(value: str, line: Line, into: Statements) -> None:
    found = re.match(r"(\d{1,6}(?:\.\d{1,3})?) ?GB", value)
    if found:
        into.state(Resources, "memory_total_bytes", int(float(found[1]) * GIB), line)
