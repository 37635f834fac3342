"""The type of a reader, and what several readers share: versions, platforms, names of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dsdoctor.model.capabilities import capability
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import (
    DeepSpeedInstall,
    Packages,
    Patient,
    TorchBuild,
    TorchLive,
)
from dsdoctor.paste.lines import Line
from dsdoctor.paste.statements import Statements


class Reader(NamedTuple):
    """A format.

    Attributes:
        name: the tool, as its users call it.
        read: finds its output among the lines of a text and states the contents.
    """

    name: str
    read: Callable[[Sequence[Line], Statements], None]


#: What tools print instead of a value.
EMPTY = re.compile(
    r"(?i)(?:n/?a|none|could not collect|not installed.*|not found|no cuda|unknown|\[?n/a\]?|-|"
    r"no relevant packages|not available|<?fill in>?|)\s*$"
)
VERSION = re.compile(r"\d{1,5}(?:\.\w{1,24}){1,5}(?:[+-][\w.]{1,60})?")
_LOCAL = re.compile(r"\+(?:cu(?P<major>1\d|9)(?P<minor>\d)\b|(?P<cpu>cpu\b)|rocm(?P<hip>[\d.]+))")
#: The CUDA runtime that a torch wheel of PyPI pins, at the CUDA version that it was built for.
_RUNTIME = re.compile(r"nvidia-cuda-runtime(?:-cu\d{2})?")
#: The CUDA version in a build string of conda: `py3.12_cuda11.8_cudnn9.1.0_0`,
#: `cuda126_generic_py312h…`.
_CONDA_CUDA = re.compile(
    r"cuda(?:(?P<dotted>\d{1,2}\.\d{1,2})|(?P<major>1\d|9)(?P<minor>\d)(?!\d))"
)
_PLATFORM = re.compile(r"(?P<system>Linux|Windows|macOS|Darwin)-(?P<rest>[\w.+~-]{1,120})$")
_MACHINE = re.compile(r"-(?P<machine>x86_64|aarch64|arm64|ppc64le|AMD64)(?=-|$)")
_LIBC = re.compile(r"-with-glibc(\d\.\d{1,3})")
#: Truncated names that contain only the vendor or the brand, not the product.
_NO_PRODUCT = frozenset({"nvidia", "tesla", "nvidia tesla", "geforce", "nvidia geforce", "quadro"})
#: Places of GPUs of which only the PCI address is known begin here, after those with an index.
NUMBERLESS = 1000
#: Drivers print these instead of a name that does not fit.
_CUT = "..."


def version(text: str) -> str | None:
    """The version at the start of a value.

    >>> version("2.1.0+cu121 (True)"), version("Could not collect")
    ('2.1.0+cu121', None)
    """
    found = VERSION.match(text.strip())
    return found.group() if found else None


def state_torch(text: str, line: Line, into: Statements, *, listed: bool = False) -> None:
    """States torch's version and what it shows about the build.

    Args:
        text: begins with the version.
        line: the line that contains it.
        into: receives the statements.
        listed: the version is from a list of distributions, not from an imported torch: next to a
            conda package, pip may list another torch.
    """
    value = version(text)
    if value is None or (listed and into.doubt(TorchBuild, "version", value, line)):
        return
    into.state(TorchBuild, "version", value, line)
    into.state(TorchBuild, "error", None, line)
    found = _LOCAL.search(value)
    if found is None:
        return
    if found["cpu"]:
        into.state(TorchBuild, "cuda", None, line)
        into.state(TorchBuild, "hip", None, line)
    elif found["hip"]:
        # the releases of ROCm and of HIP in it have two numbers in common
        into.state(TorchBuild, "cuda", None, line)
        into.state(TorchBuild, "hip", ".".join(found["hip"].split(".")[:2]), line)
    else:
        state_cuda(f"{found['major']}.{found['minor']}", line, into)


def state_cuda(cuda: str, line: Line, into: Statements) -> None:
    """States the CUDA version of a torch build; such a build is not for ROCm."""
    into.state(TorchBuild, "cuda", ".".join(cuda.split(".")[:2]), line)
    into.state(TorchBuild, "hip", None, line)


def state_deepspeed(text: str, line: Line, into: Statements, *, listed: bool = False) -> None:
    """States DeepSpeed's version; as `state_torch`."""
    value = version(text)
    if value is not None and not (listed and into.doubt(DeepSpeedInstall, "version", value, line)):
        into.state(DeepSpeedInstall, "version", value, line)
        into.state(DeepSpeedInstall, "error", None, line)


def state_python(text: str, line: Line, into: Statements) -> None:
    """States the interpreter's version; older tools print `3.8`, newer ones all of it."""
    found = re.match(r"(\d\.\d{1,2}(?:\.\d{1,2})?)\b", text.strip())
    if found:
        into.state(Patient, "version", found[1], line)


def state_platform(text: str, line: Line, into: Statements) -> None:
    """States what follows from `platform.platform()`."""
    found = _PLATFORM.match(text.strip())
    if found is None:
        return
    rest = found["rest"]
    machine, libc = _MACHINE.search(rest), _LIBC.search(rest)
    ends = [match.start() for match in (machine, libc) if match]
    release = rest[: min(ends, default=len(rest))]
    into.state(OsInfo, "system", {"macOS": "Darwin"}.get(found["system"], found["system"]), line)
    into.state(OsInfo, "release", release, line)
    into.state(OsInfo, "wsl", "microsoft" in release.lower(), line)
    if machine:
        into.state(OsInfo, "machine", machine["machine"].replace("AMD64", "x86_64"), line)
    if libc and not _is_newer(into.value(OsInfo, "libc"), libc[1]):
        into.state(OsInfo, "libc", f"glibc {libc[1]}", line)


def _is_newer(stated: str | None, libc: str) -> bool:
    """Whether a newer glibc was stated: the platform names the one that its interpreter needs."""
    known = re.fullmatch(r"glibc (\d+)\.(\d+)", stated or "")
    major, minor = libc.split(".")
    return known is not None and (int(known[1]), int(known[2])) > (int(major), int(minor))


def state_package(name: str, text: str, line: Line, into: Statements) -> None:
    """States an installed distribution, and what it shows about torch and DeepSpeed."""
    found = re.match(r"\d[\w.+!-]*", text.strip())
    if found is None:
        return
    value = found.group()
    key = re.sub(r"[-_.]+", "-", name).lower()
    into.state(Packages, f"packages.{key}", {"name": key, "version": value}, line)
    if key == "torch":
        state_torch(value, line, into, listed=True)
        _state_pinned_cuda(line, into)
    elif _RUNTIME.fullmatch(key):
        _state_pinned_cuda(line, into)
    elif key == "deepspeed":
        state_deepspeed(value, line, into, listed=True)
    elif re.fullmatch(r"nvidia-nccl-cu\d+", key):
        into.state(TorchBuild, "nccl", value, line)


def _state_pinned_cuda(line: Line, into: Statements) -> None:
    """States the CUDA version of a torch wheel from PyPI, whose version does not contain it."""
    packages = ("nvidia-cuda-runtime-cu11", "nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime")
    found = [into.value(Packages, f"packages.{name}") for name in packages]
    pinned = [one["version"] for one in found if one]
    torch = into.value(TorchBuild, "version")
    if torch and "+" not in torch and len(pinned) == 1 and not into.states(TorchBuild, "cuda"):
        state_cuda(pinned[0], line, into)


def state_conda_package(name: str, text: str, build: str, line: Line, into: Statements) -> None:
    """States a package of conda; for `pytorch`, also the CUDA version in its build string."""
    if name == "python":
        state_python(text, line, into)
    elif name in ("pytorch", "libtorch", "pytorch-gpu", "pytorch-cpu"):
        found = _CONDA_CUDA.search(build)
        if name == "pytorch":
            state_package("torch", text, line, into)
        if name != "pytorch" or into.states(TorchBuild, "cuda"):
            return
        if found:
            cuda = found["dotted"] or f"{found['major']}.{found['minor']}"
            state_cuda(cuda, line, into)
        elif re.search(r"(?:^|_)cpu(?:_|$)", build):
            into.state(TorchBuild, "cuda", None, line)
            into.state(TorchBuild, "hip", None, line)
    elif build.startswith("pypi") or not re.match(r"(?:lib|_|ld_impl|cuda|nvidia)", name):
        state_package(name, text, line, into)


def state_gpu(index: int, name: str, line: Line, into: Statements) -> bool:
    """States a GPU and what follows from its product; False for a name without a product."""
    text = name.strip()
    if index < NUMBERLESS:
        into.state(Gpus, f"gpus.{index}.index", index, line)
    cut = text.endswith((_CUT, "..")) or text.lower() in _NO_PRODUCT
    if not text or cut or len(text) > 80:  # noqa: PLR2004
        return False
    into.state(Gpus, f"gpus.{index}.name", text, line)
    known = capability(text)
    if known is not None:
        into.state(Gpus, f"gpus.{index}.cc_major", known[0], line)
        into.state(Gpus, f"gpus.{index}.cc_minor", known[1], line)
    return True


def state_cuda_available(text: str, line: Line, into: Statements) -> None:
    """States what `torch.cuda.is_available()` returned in an imported torch."""
    word = text.strip().lower()
    if word not in ("true", "false", "yes", "no"):
        return
    works = word in ("true", "yes")
    into.state(TorchLive, "imported", {"ok": True}, line)
    into.state(TorchLive, "died", None, line)
    into.state(TorchLive, "cuda_ok", works, line)
    if works:
        into.state(TorchLive, "devices.0.index", 0, line)
    else:
        into.state(TorchLive, "devices[]", None, line)
