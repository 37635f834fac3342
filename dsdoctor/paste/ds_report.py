"""`ds_report`, from DeepSpeed 0.3 to 0.19.

Source: deepspeed/env_report.py of DeepSpeed 0.3.0 to 0.19.8, read 2026-11-22.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.model.facts.python import DeepSpeedInstall, DeepSpeedLive, TorchBuild
from dsdoctor.model.facts.toolchain import Compilers, CudaToolkits
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import (
    Reader,
    state_cuda,
    state_cuda_available,
    state_deepspeed,
    state_torch,
)
from dsdoctor.paste.statements import Statements

_TITLE = re.compile(r"\s*DeepSpeed (?:C\+\+/CUDA extension op report|general environment info:)")
_DOTTED = re.compile(r"\s*(?P<key>[A-Za-z][\w ()/.]{2,40}?) \.{2,40}\s?(?P<value>.*)$")
_OP = re.compile(r"\s*(?P<op>[a-z][a-z0-9_]{2,40}) \.{0,30}\s*\[(?P<built>YES|NO)\]")
#: Lines that only this report has: people paste them without the title above them.
_UNTITLED = re.compile(
    r"\s*(?:torch (?:install path|version|cuda version|hip version)"
    r"|deepspeed (?:install path|info|wheel compiled w\.)|nvcc version) \.{3,40}\s"
)
#: What torch prints if a toolkit exists and `torch.cuda.is_available()` is false, when it
#: looks for the compiler (torch/utils/cpp_extension.py 1.0 to 2.13, `_find_cuda_home`).
_NO_DEVICE = re.compile(r"\s*No CUDA runtime is found, using CUDA_HOME=")
#: Also before the command that installed it; `1` there would say nothing about this shell.
_NO_OPS = re.compile(r"(?:.*[\s$>])?(?:export )?DS_BUILD_OPS=(?P<value>0)(?:\s|$)")
#: Lines of the longest such report, with the warnings of every op.
_MOST = 160


def _read(lines: Sequence[Line], into: Statements) -> None:
    left = 0
    blind: Line | None = None
    no_ops: Line | None = None
    known = False
    for line in lines:
        no_ops = no_ops or (line if _NO_OPS.match(line.text) else None)
        blind = blind or (line if _NO_DEVICE.match(line.text) else None)
        known = known or left > 0
        if _TITLE.match(line.text):
            left = _MOST
            into.recognized()
            into.state(DeepSpeedLive, "imported", {"ok": True}, line)
            continue
        if not left and _UNTITLED.match(line.text):
            left = _MOST
            into.recognized()
        if left:
            left = 0 if line.fence else left - 1
            _line(line, into)
    known = known or left > 0
    if no_ops is not None and known:
        into.state(Environment, "variables.DS_BUILD_OPS", "0", no_ops)
    if blind is not None and known:
        state_cuda_available("False", blind, into)
        if not into.states(CudaToolkits, "chosen"):
            into.state(CudaToolkits, "chosen", 0, blind)
            into.state(CudaToolkits, "found.0.nvcc", "nvcc", blind)


def _line(line: Line, into: Statements) -> None:
    op = _OP.match(line.text)
    if op and op["op"] != "ninja":
        # `compatible` was tried at that time and says little about a job; `installed` is pre-built
        if op["built"] == "YES":
            into.state(DeepSpeedInstall, f"installed_ops.{op['op']}", value=True, line=line)
        return
    found = _DOTTED.match(line.text)
    if found is None:
        return
    key, value = found["key"].strip(), found["value"].strip()
    if key == "ninja":
        _ninja(value, line, into)
    elif key == "torch version":
        state_torch(value, line, into)
    elif key == "torch cuda version":
        _cuda(value, line, into)
    elif key == "torch hip version" and re.match(r"\d", value):
        into.state(TorchBuild, "hip", value.split()[0], line)
    elif key == "deepspeed info":
        state_deepspeed(value.split(",")[0], line, into)
    elif key == "nvcc version":
        _nvcc(value, line, into)
    elif key == "deepspeed wheel compiled w.":
        _wheel(value, line, into)
    elif key == "shared memory (/dev/shm) size":
        _shm(value, line, into)


def _ninja(value: str, line: Line, into: Statements) -> None:
    if "[OKAY]" in value:
        into.state(Compilers, "ninja", "ninja", line)
    elif "[FAIL]" in value:
        into.state(Compilers, "ninja", None, line)


def _cuda(value: str, line: Line, into: Statements) -> None:
    if re.match(r"\d{1,2}\.\d", value):
        state_cuda(value.split(maxsplit=1)[0], line, into)
    elif value == "None":
        into.state(TorchBuild, "cuda", None, line)


def _nvcc(value: str, line: Line, into: Statements) -> None:
    """The nvcc of torch's CUDA_HOME, which is the one that DeepSpeed builds with."""
    found = re.match(r"(\d{1,2}\.\d{1,2})\b", value)
    if found:
        into.state(CudaToolkits, "chosen", 0, line)
        into.state(CudaToolkits, "found.0.version", found[1], line)
        into.state(CudaToolkits, "found.0.nvcc", "nvcc", line)
    elif "cannot find CUDA_HOME" in value:
        into.state(CudaToolkits, "chosen", None, line)
        into.state(CudaToolkits, "found[]", None, line)
        into.state(CudaToolkits, "cuda_home_missing", None, line)
    elif "nvcc missing" in value:  # CUDA_HOME is a folder without `bin/nvcc`
        into.state(CudaToolkits, "chosen", 0, line)
        into.state(CudaToolkits, "found.0.version", None, line)
        into.state(CudaToolkits, "found.0.nvcc", None, line)
        into.state(CudaToolkits, "cuda_home_missing", None, line)


def _wheel(value: str, line: Line, into: Statements) -> None:
    torch = re.search(r"torch (\d+\.\d+)", value)
    cuda = re.search(r"cuda (\d+\.\d+)", value)
    if torch is None:
        return
    built = torch[1] != "0.0"  # "0.0" if no op was pre-built
    into.state(DeepSpeedInstall, "built_for_torch", torch[1] if built else None, line)
    if cuda:
        into.state(DeepSpeedInstall, "built_for_cuda", cuda[1] if built else None, line)
    if not built:
        into.state(DeepSpeedInstall, "installed_ops", {}, line)


def _shm(value: str, line: Line, into: Statements) -> None:
    found = re.match(r"(\d{1,6}(?:\.\d{1,4})?) ?(B|KB|MB|GB|TB)\b", value)
    if found:
        size = int(float(found[1]) * BINARY[found[2][0].lower()])
        into.state(Resources, "shm_total_bytes", size, line)


READER = Reader("ds_report", _read)
