"""What torch told: a driver that it rejects and nothing else reports, and CUDA that did not start."""

from __future__ import annotations

import re

from dsdoctor.api import (
    Finding,
    Missing,
    NotStated,
    Nvml,
    OsInfo,
    TorchBuild,
    TorchLive,
    Why,
    fail,
    skip,
    without_fix,
)
from dsdoctor_checks._util import is_jetson

#: torch 1.0-2.13 torch/cuda/__init__.py and c10/cuda/CUDAFunctions.cpp: 1000 * major + 10 * minor.
_FOUND = re.compile(r"too old \(found version (?P<number>\d{4,6})\)")


def _told(live: TorchLive | Missing) -> tuple[int, int] | None:
    """The CUDA version that torch says the driver supports; None if it says none."""
    found = _FOUND.search((live.cuda_error or "") if isinstance(live, TorchLive) else "")
    if found is None:
        return None
    number = int(found["number"])
    return number // 1000, number % 1000 // 10


def without_driver(
    torch: TorchBuild,
    built: tuple[int, int],
    nvml: Nvml | Missing,
    live: TorchLive | Missing,
    os: OsInfo | Missing,
) -> Finding:
    """No driver is known; torch may have named the CUDA version that it found."""
    told = _told(live)
    if told is not None and built > told:
        return _by_torch(torch, told, jetson=is_jetson(os))
    if isinstance(nvml, Missing) and nvml.why is Why.NOT_ASKED:
        return skip(nvml.detail)
    return skip("no NVIDIA driver on this machine")


def _by_torch(torch: TorchBuild, told: tuple[int, int], *, jetson: bool) -> Finding:
    """A driver whose version nothing tells, and that torch rejects."""
    version = f"{told[0]}.{told[1]}"
    name = (torch.cuda or "").replace(".", "-")
    hint = (
        f"install `cuda-compat-{name}` of NVIDIA's repository for Jetson and add its folder to"
        f" `LD_LIBRARY_PATH`, or NVIDIA's torch for this JetPack release (CUDA {version})"
        if jetson
        else f"upgrade the NVIDIA driver, or install a torch build for CUDA {version} or older"
    )
    return without_fix(
        fail(
            f"torch reports a driver that supports up to CUDA {version}, but torch {torch.version} was"
            f" built for CUDA {torch.cuda}",
            effect="CUDA initialization fails with error 35; every rank exits at startup",
            hint=hint,
            torch=torch.version,
            torch_cuda=torch.cuda,
            serves=version,
        )
    )


def could_not_start(torch: TorchBuild | Missing, live: TorchLive | Missing) -> bool:
    """Whether a torch that is built for CUDA could not start it."""
    try:
        built = isinstance(torch, TorchBuild) and torch.cuda is not None
    except NotStated:
        return False
    return built and isinstance(live, TorchLive) and live.cuda_ok is False
