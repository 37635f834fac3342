"""`python -m torch.utils.collect_env`, from torch 0.4 to 2.13, and what vLLM and Intel made of it.

Source: torch/utils/collect_env.py of torch 1.0 to 2.13 and vllm/collect_env.py, read 2026-11-22;
`env_info_fmt` in collect_env.py of Intel's extension for PyTorch 2.0, read 2026-11-30.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import Environment, OsInfo, Resources
from dsdoctor.model.facts.python import TorchBuild, TorchLive
from dsdoctor.model.facts.toolchain import Compilers, CudaToolkits
from dsdoctor.model.units import whole
from dsdoctor.paste.lines import Line
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.reader import (
    EMPTY,
    Reader,
    state_conda_package,
    state_cuda,
    state_cuda_available,
    state_gpu,
    state_package,
    state_platform,
    state_python,
    state_torch,
    version,
)
from dsdoctor.paste.statements import Statements
from dsdoctor.paste.unfolded import unfolded
from dsdoctor.probes.environment import allowed

#: What vLLM's report begins with since 0.9; in torch's own it follows the versions of torch.
_SYSTEM = re.compile(r"\s*OS\s*: ")
#: Lines from there to torch's version: compilers, glibc and two heads.
_TO_TORCH = 14
#: The first key, and keys of which one follows soon: `PyTorch version:` alone proves nothing.
_FIRST = re.compile(r"\s*PyTorch version\s*: ")
_NEXT = re.compile(
    r"\s*(?:Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch"
    r"|PyTorch CXX11 ABI|IPEX version)\s*:"
)
#: Keys that no other tool prints: a report whose head was cut off has two of them close together.
_DISTINCT = re.compile(
    r"\s*(?P<key>Is debug build|CUDA used to build PyTorch|ROCM used to build PyTorch"
    r"|Is CUDA available|CUDA runtime version|CUDA_MODULE_LOADING set to"
    r"|GPU models and configuration|Nvidia driver version)\s*:"
)
_KEY = re.compile(r"\s*(?P<key>[A-Z][\w ()./]{1,48}?)\s*:(?:\s+(?P<value>.*))?$")
_GPU = re.compile(r"\s*GPU (?P<index>\d{1,3}): (?P<name>[^(]{2,80}?)(?:\s*\(UUID.*)?$")
_PACKAGE = re.compile(
    r"\s*\[(?P<tool>pip|pip3|pip2|conda)\]\s+(?P<name>[\w.-]{1,60})(?:==|\s+)(?P<v>\S+)"
    r"(?:\s+(?P<build>\S+))?"
)
#: Fewest consecutive lines of packages that are the list, even without its head.
_CUT_LIST = 2
_VARIABLE = re.compile(r"\s*(?P<name>[A-Z][A-Z0-9_]{2,60})=(?P<value>.*)$")
_LIBRARIES = re.compile(r"\s*Versions of relevant libraries\s*:")
#: Before 3.8 Python reported the newest symbol version that its own executable requires of glibc,
#: not the machine's glibc (`platform.libc_ver`, bpo-35389).
_OLD_PYTHON = re.compile(r"\s*Python version\s*:\s*(?:2\.|3\.[0-7](?:\D|$))")
#: What it queries from `nvidia-smi`.
_OF_NVIDIA_SMI = ("GPU models and configuration", "Nvidia driver version")
#: Lines of the longest such report (lscpu, 60 packages of pip and conda, a topology of 16 GPUs).
_MOST = 400
#: `NAME=value command …` is a shell line that sets the variable only for that command.
_COMMAND_FOLLOWS = re.compile(r"\s[A-Za-z./~$\"'-]")


def _torch(value: str, line: Line, into: Statements) -> None:
    state_torch(value, line, into)


def _cuda_build(value: str, line: Line, into: Statements) -> None:
    found = version(value)
    if found is not None:
        state_cuda(found, line, into)
    elif into.states(TorchBuild, "version") and value.strip() in ("None", "Could not collect"):
        into.state(TorchBuild, "cuda", None, line)


def _hip_build(value: str, line: Line, into: Statements) -> None:
    found = version(value)
    if found is not None:
        into.state(TorchBuild, "hip", found, line)
        into.state(TorchBuild, "cuda", None, line)
    elif into.states(TorchBuild, "version") and EMPTY.match(value):
        into.state(TorchBuild, "hip", None, line)


def state_gcc(value: str, line: Line, into: Statements) -> None:
    """States the gcc on PATH from the first line of its `--version`."""
    found = re.search(r"(\d{1,2}\.\d{1,2}(?:\.\d{1,2})?)\s*(?:\d{8}.*)?$", value)
    if found is None:
        return
    for compiler in ("cxx", "cc"):
        into.state(Compilers, f"{compiler}.version", found[1], line)
        into.state(Compilers, f"{compiler}.kind", "gcc", line)
        into.state(Compilers, f"{compiler}.command", "gcc", line)
        into.state(Compilers, f"{compiler}.error", None, line)
    into.state(Compilers, "cc.path", "gcc", line)  # it ran the gcc on PATH


def _os(value: str, line: Line, into: Statements) -> None:
    found = re.search(r"\((x86_64|aarch64|ppc64le|arm64)\)", value)
    if found:
        into.state(OsInfo, "machine", found[1], line)
    if "Windows" in value:
        into.state(OsInfo, "system", "Windows", line)
    elif found and not value.startswith("mac"):
        into.state(OsInfo, "system", "Linux", line)
        named = re.match(
            r"(Ubuntu|Debian)[^\d\n]{0,20} (\d{1,2}(?:\.04|\.10)?)(?![.\d]*\d{3})", value
        )
        if named:
            into.state(OsInfo, "distribution", f"{named[1].lower()} {named[2]}", line)


def _libc(value: str, line: Line, into: Statements) -> None:
    found = re.match(r"glibc-(\d\.\d+(?:\.\d+)?)", value)
    if found:
        into.state(OsInfo, "libc", f"glibc {found[1]}", line)


def _driver(value: str, line: Line, into: Statements) -> None:
    found = version(value)
    if found is not None:
        state_driver(found, line, into)


def state_driver(driver: str, line: Line, into: Statements) -> None:
    """States a driver's version that `nvidia-smi` printed: NVML answered it."""
    into.state(Nvml, "driver_version", driver, line)
    into.state(Nvml, "error", None, line)


def state_nvcc(release: str, line: Line, into: Statements) -> None:
    """States the nvcc on PATH, unless DeepSpeed's own choice was stated."""
    if into.states(CudaToolkits, "chosen"):
        return
    into.state(CudaToolkits, "chosen", 0, line)
    into.state(CudaToolkits, "found.0.version", release, line)
    into.state(CudaToolkits, "found.0.nvcc", "nvcc", line)


def _nvcc(value: str, line: Line, into: Statements) -> None:
    found = re.match(r"(\d{1,2}\.\d{1,2})(?:\.|\b)", value.strip())
    if found:
        state_nvcc(found[1], line, into)


def _cpus(value: str, line: Line, into: Statements) -> None:
    count = whole(value.strip())
    if count is not None and 0 < count < 1 << 16:
        into.state(Resources, "cpus_logical", count, line)


_Say = Callable[[str, Line, Statements], None]
_KEYS: dict[str, _Say] = {
    "PyTorch version": _torch,
    "CUDA used to build PyTorch": _cuda_build,
    "ROCM used to build PyTorch": _hip_build,
    "OS": _os,
    "GCC version": state_gcc,
    "Libc version": _libc,
    "Python version": state_python,
    "Python platform": state_platform,
    "Is CUDA available": state_cuda_available,
    "CUDA runtime version": _nvcc,
    "Nvidia driver version": _driver,
    "CPU(s)": _cpus,
}


def _read(lines: Sequence[Line], into: Statements) -> None:
    lines = unfolded(lines)
    place = 0
    while place < len(lines):
        if _begins(lines, place) or _begins_after_a_cut(lines, place):
            place = _region(lines, place, into)
        elif _LIBRARIES.match(lines[place].text):
            place = _libraries(lines, place + 1, into)
        elif all(_PACKAGE.match(line.text) for line in lines[place : place + _CUT_LIST]):
            place = _libraries(lines, place, into)  # the head of the list was cut off
        else:
            place += 1


def _begins(lines: Sequence[Line], place: int) -> bool:
    if _SYSTEM.match(lines[place].text):
        last = min(len(lines), place + _TO_TORCH)
        return any(_begins_with_torch(lines, at) for at in range(place + 1, last))
    return _begins_with_torch(lines, place)


def _begins_with_torch(lines: Sequence[Line], place: int) -> bool:
    if not _FIRST.match(lines[place].text):
        return False
    return any(_NEXT.match(line.text) for line in lines[place + 1 : place + 7])


def _begins_after_a_cut(lines: Sequence[Line], place: int) -> bool:
    """Whether a report whose first lines are missing continues here."""
    one = _DISTINCT.match(lines[place].text)
    if one is None:
        return False
    below = (_DISTINCT.match(line.text) for line in lines[place + 1 : place + 4] if not line.fence)
    return any(other is not None and other["key"] != one["key"] for other in below)


def _libraries(lines: Sequence[Line], place: int, into: Statements) -> int:
    """Reads a list of packages that was quoted without the report; returns where it ends."""
    while place < len(lines) and _PACKAGE.match(lines[place].text):
        into.recognized()
        _other(lines[place], into)
        place += 1
    return place


def _region(lines: Sequence[Line], place: int, into: Statements) -> int:
    """Reads one report; returns where it ends: at a fence, the next report, or the line limit."""
    into.recognized()
    listed = _Listed()
    unlisted: dict[str, Line] = {}
    built: Line | None = None
    end = min(len(lines), place + _MOST)
    for at in range(place, end):
        line = lines[at]
        if at > place and (line.fence or _begins(lines, at)):
            end = at
            break
        key = _KEY.match(line.text)
        name, value = (key["key"].strip(), (key["value"] or "").rstrip("` ")) if key else ("", "")
        if name in _OF_NVIDIA_SMI and value == "Could not collect":
            unlisted[name] = line
        elif name == "GPU models and configuration" and value == "No CUDA":
            _no_gpu(line, into)
        elif name == "GPU models and configuration":
            listed.open = True
            listed.take(value, line, into)
        elif listed.takes(line.text, name, line, into) or (
            name == "Libc version"
            and any(_OLD_PYTHON.match(below.text) for below in lines[at + 1 : at + 4])
        ):
            continue
        elif name in _KEYS and value:
            built = line if name == "CUDA used to build PyTorch" else built
            _KEYS[name](value, line, into)
        else:
            _other(line, into)
    if built is not None and _is_of_the_cpu(into):
        into.state(TorchBuild, "hip", None, built)
    if len(unlisted) == len(_OF_NVIDIA_SMI) and _torch_sees_none(into):
        _no_gpu(unlisted["GPU models and configuration"], into)
    return end


def _torch_sees_none(into: Statements) -> bool:
    """Whether a torch that was built for CUDA found no device."""
    return bool(into.value(TorchBuild, "cuda")) and into.value(TorchLive, "cuda_ok") is False


def _is_of_the_cpu(into: Statements) -> bool:
    """Whether a report of before 1.7, which has no line on ROCm, describes a build for the CPU.

    A build for ROCm is ruled out by NVIDIA's driver.
    """
    return (
        into.states(TorchBuild, "cuda")
        and into.value(TorchBuild, "cuda") is None
        and not into.states(TorchBuild, "hip")
        and into.states(Nvml, "driver_version")
    )


def _no_gpu(line: Line, into: Statements) -> None:
    """`nvidia-smi -L` listed no GPU and torch found none; with no nvcc either it says `No CUDA`."""
    into.state(Gpus, "gpus[]", None, line)
    into.state(Gpus, "count", 0, line)
    into.state(Gpus, "stopped_at", None, line)


class _Listed:
    """The GPUs below `GPU models and configuration`, as `nvidia-smi -L` prints them."""

    def __init__(self) -> None:
        self.open = False
        self._lines: dict[int, Line] = {}

    def takes(self, text: str, name: str, line: Line, into: Statements) -> bool:
        """Whether a line belongs to the list; the next key ends the list and proves it complete."""
        if not self.open:
            return False
        if not text.strip() or re.match(r"\s*(?:GPU \d|MIG )", text):
            self.take(text, line, into)
            return True
        self.open = False
        if name and sorted(self._lines) == list(range(len(self._lines))) and self._lines:
            into.state(Gpus, "gpus[]", None, self._lines[0])
            into.state(Gpus, "count", len(self._lines), self._lines[0])
            into.state(Gpus, "stopped_at", None, self._lines[0])
        return False

    def take(self, text: str, line: Line, into: Statements) -> None:
        """Takes one GPU, if the text describes one."""
        found = _GPU.match(text)
        if found and int(found["index"]) not in self._lines:
            self._lines[int(found["index"])] = line
            state_gpu(int(found["index"]), found["name"], line, into)


def _other(line: Line, into: Statements) -> None:
    package = _PACKAGE.match(line.text)
    if package and package["tool"] == "conda":
        state_conda_package(package["name"], package["v"], package["build"] or "", line, into)
        return
    if package:
        state_package(package["name"], package["v"], line, into)
        return
    variable = _VARIABLE.match(line.text)
    if (
        variable
        and allowed(variable["name"])
        and not is_placeholder(variable["value"])
        and not _COMMAND_FOLLOWS.search(variable["value"])
    ):
        path = f"variables.{variable['name']}"
        into.state(Environment, path, variable["value"].strip(), line)


READER = Reader("collect_env", _read)
