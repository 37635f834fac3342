"""`python -m sglang.check_env`, and `collect_env` of mmcv and mmengine, from which its list stems.

Their nvcc is that of torch's CUDA_HOME, as in `ds_report`; their GPUs are those visible to torch.
Those of OpenMMLab begin with `sys.platform` and quote `torch.__config__.show()`, which contains the
CUDA version of the build. OpenCompass asks for the same entries as `pprint` prints them, sorted.

Sources: sglang/check_env.py of SGLang 0.2 to 0.5, read 2026-11-23; mmcv/utils/env.py of mmcv 1 and
mmengine/utils/dl_utils/collect_env.py, read 2026-11-28; opencompass/utils/collect_env.py and the
form for its issues, read 2026-11-29.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.paste.collect_env import state_driver, state_gcc
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import (
    Reader,
    state_cuda,
    state_cuda_available,
    state_gpu,
    state_package,
    state_python,
    state_torch,
    version,
)
from dsdoctor.paste.statements import Statements

_FIRST = re.compile(r"\s*Python: \d\.\d{1,2}\.\d")
_OPENMMLAB = re.compile(r"\s*sys\.platform: \w+\s*$")
#: A line of `torch.__config__.show()`; without CUDA there is none.
_RUNTIME = re.compile(r"\s+- CUDA Runtime (?P<version>\d{1,2}\.\d{1,2})$")
_AVAILABLE = re.compile(r"\s*(?P<platform>CUDA|ROCM) available: (?P<word>True|False)$")
_GPUS = re.compile(
    r"\s*GPU (?P<indices>\d{1,3}(?:,\d{1,3}){0,63})(?P<capability> Compute Capability)?"
    r": (?P<value>.{2,80})$"
)
_ITEM = re.compile(r"\s*(?P<key>[A-Za-z][\w ]{1,30}): (?P<value>\S.*)$")
#: The same line in a printed dictionary, which divides a long text at its ends of lines.
_PART = re.compile(r"\s*\x27\s+- CUDA Runtime (?P<version>\d{1,2}\.\d{1,2})\\n\x27$")
#: An entry of a printed dictionary.
_ENTRY = re.compile(
    r"\s*\{?\x27(?P<key>[A-Za-z][\w ,.]{1,160})\x27: \x27?(?P<value>[^\x27]{1,200}?)\x27?[,}]?\s*$"
)
#: Lines of the longest such report before its topology.
_MOST = 70
#: Distributions in its list that checks use; it prints names of modules.
_PACKAGES = {"transformers", "triton", "numpy", "vllm", "accelerate"}


def _read(lines: Sequence[Line], into: Statements) -> None:
    _read_list(lines, into, of_openmmlab=False)


def _read_openmmlab(lines: Sequence[Line], into: Statements) -> None:
    _read_list(lines, into, of_openmmlab=True)


def _read_list(lines: Sequence[Line], into: Statements, *, of_openmmlab: bool) -> None:
    left, cuda = 0, True
    for place, line in enumerate(lines):
        above = lines[place - 1].text if place else ""
        if _FIRST.match(line.text) and of_openmmlab == bool(_OPENMMLAB.match(above)):
            found = next(
                filter(None, (_AVAILABLE.match(below.text) for below in lines[place + 1 :][:2])),
                None,
            )
            if found:
                left, cuda = _MOST, found["platform"] == "CUDA"
                into.recognized()
        left = 0 if line.fence else left - 1
        if left > 0:
            _line(line, into, cuda=cuda)
            runtime = _RUNTIME.match(line.text) if of_openmmlab else None
            if runtime:
                state_cuda(runtime["version"], line, into)


def _read_dictionary(lines: Sequence[Line], into: Statements) -> None:
    entries = [(found, line) for line in lines if (found := _ENTRY.match(line.text))]
    if not {"CUDA available", "PyTorch", "sys.platform"} <= {found["key"] for found, _ in entries}:
        return
    into.recognized()
    for found, line in entries:
        _line(line._replace(text=f"{found['key']}: {found['value']}"), into, cuda=True)
    for line in lines:
        if runtime := _PART.match(line.text):
            state_cuda(runtime["version"], line, into)


def _line(line: Line, into: Statements, *, cuda: bool) -> None:
    available, gpus = _AVAILABLE.match(line.text), _GPUS.match(line.text)
    if available:
        state_cuda_available(available["word"], line, into)
    elif gpus and cuda:
        _gpus(gpus, line, into)
    elif gpus is None:
        found = _ITEM.match(line.text)
        if found:
            _item(found["key"], found["value"], line, into, cuda=cuda)


def _gpus(found: re.Match[str], line: Line, into: Statements) -> None:
    for index in map(int, found["indices"].split(",")):
        if found["capability"]:
            number = re.match(r"(\d{1,2})\.(\d)$", found["value"].strip())
            if number:
                into.state(Gpus, f"gpus.{index}.index", index, line)
                into.state(Gpus, f"gpus.{index}.cc_major", int(number[1]), line)
                into.state(Gpus, f"gpus.{index}.cc_minor", int(number[2]), line)
        else:
            state_gpu(index, found["value"], line, into)


def _item(key: str, value: str, line: Line, into: Statements, *, cuda: bool) -> None:
    if key == "Python":
        state_python(value, line, into)
    elif key == "PyTorch":
        state_torch(value, line, into)
    elif key == "NVCC":
        found = re.search(
            r"release (\d{1,2}\.\d{1,2}), V\d|cuda_(\d{1,2}\.\d{1,2})\.(?:r\d|TC)", value
        )
        if found:
            into.state(CudaToolkits, "chosen", 0, line)
            into.state(CudaToolkits, "found.0.version", found[1] or found[2], line)
            into.state(CudaToolkits, "found.0.nvcc", "nvcc", line)
    elif key == "GCC":
        state_gcc(value, line, into)
    elif key == "TorchVision":
        state_package("torchvision", value, line, into)
    elif key == "CUDA Driver Version" and cuda:
        driver = version(value)
        if driver is not None:
            state_driver(driver, line, into)
    elif key == "HIPCC" and not cuda:
        found = re.match(r"HIP version: ([\d.]{3,20})", value)
        if found:
            into.state(TorchBuild, "hip", found[1], line)
            into.state(TorchBuild, "cuda", None, line)
    elif key == "ulimit soft" and value.isdecimal() and len(value) < 19:  # noqa: PLR2004
        into.state(Resources, "limit_nofile", int(value), line)
    elif key in _PACKAGES:
        state_package(key, value, line, into)


READER = Reader("sglang.check_env", _read)
OPENMMLAB = Reader("collect_env of OpenMMLab", _read_openmmlab)
OPENCOMPASS = Reader("collect_env of OpenCompass", _read_dictionary)
