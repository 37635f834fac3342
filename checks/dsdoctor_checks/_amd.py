"""AMD GPUs: what is read from them, and what they need."""

from __future__ import annotations

from dsdoctor.api import Missing, NotStated, NvidiaKernel, OsInfo, TorchBuild, TorchLive

#: torch's own page asks for the release of ROCm; dsdoctor keeps no table of its builds.
ROCM_BUILD = "torch's ROCm build, with the command of https://pytorch.org/get-started/locally/"


def amd_gpus(os: OsInfo | Missing, kernel: NvidiaKernel | Missing) -> int:
    """The AMD GPUs of a machine without NVIDIA GPUs."""
    try:
        count = os.amd_gpus if isinstance(os, OsInfo) else 0
    except NotStated:  # a paste may not say so
        return 0
    return 0 if isinstance(kernel, NvidiaKernel) and kernel.pci else count


def may_not_open(os: OsInfo | Missing) -> bool:
    """Whether the account is known not to have access to `/dev/kfd`."""
    try:
        return isinstance(os, OsInfo) and os.kfd_writable is False
    except NotStated:
        return False


def has_no_kfd(os: OsInfo | Missing) -> bool:
    """Whether this is a container without `/dev/kfd`, as far as that is known."""
    try:
        return isinstance(os, OsInfo) and os.container is not None and os.kfd_writable is None
    except NotStated:
        return False


def rocm_finds_none(torch: TorchBuild | Missing, live: TorchLive | Missing) -> bool:
    """Whether torch is built for ROCm, imports, and finds no GPU that it can use."""
    if not isinstance(live, TorchLive):
        return False
    try:
        if live.cuda_ok is not False:
            return False
        if "hipGetDeviceCount" in (live.cuda_error or ""):  # only a build for ROCm calls it
            return True
        return isinstance(torch, TorchBuild) and torch.hip is not None and live.imported.ok
    except NotStated:  # old reports do not say what torch was built for
        return False
