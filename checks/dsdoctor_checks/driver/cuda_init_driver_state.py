"""CUDA does not initialise although driver and GPU are there.

## Why it matters
The driver is in a bad state: its unified-memory module is not loaded or damaged, the machine came
back from suspend, the fabric manager is not up, or a stub of a toolkit is loaded in place of
libcuda. Every rank dies at its first CUDA call.

## What to do
Reload the module (`modprobe -r nvidia_uvm && modprobe nvidia_uvm`) or restart the machine. For
error 34 take the toolkit's `stubs` folder off `LD_LIBRARY_PATH`; for 805 restart the MPS server.

## References
- driver_types.h: errors 3, 34, 802, 803, 805 and 999
- https://github.com/pytorch/pytorch/issues/35710
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    LibCuda,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import gpu_expected, served_by_nvidia
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "cuda-init-driver-state",
    id="DSD108",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "fabric-manager-not-running",
        "driver-library-mismatch",
        "driver-too-old",
        "driver-missing",
        "container-lost-gpu",
    ),
)
_STUB, _MPS = 34, 805
_STATES = (3, _STUB, _tables.NOT_READY, _tables.MISMATCH, _MPS, 999)
_HINTS = {
    _STUB: "take the toolkit's `stubs` folder off `LD_LIBRARY_PATH`",
    _MPS: "restart the MPS server with `nvidia-cuda-mps-control -d`, or unset `CUDA_MPS_*`",
}
_RELOAD = "reload the module with `modprobe -r nvidia_uvm && modprobe nvidia_uvm`, or restart"


@check(CONDITION)
def driver_state_is_good(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    lib: LibCuda | Missing,
) -> Iterator[Finding]:
    """The error numbers that speak of the driver's state, where a driver is."""
    code = live.cuda_error_code
    if live.cuda_ok is not False or code not in _STATES:
        return
    if not served_by_nvidia(kernel) and not gpu_expected(RunNeeds(), kernel, gpus):
        return
    uvm = isinstance(kernel, Missing) or "nvidia_uvm" in kernel.modules
    lacking = "" if uvm else ", and the `nvidia_uvm` module is not loaded"
    yield fail(
        f"CUDA ends with error {code} ({_tables.NAMES[code]}) at start{lacking},"
        " although a driver is loaded",
        effect="every rank dies at its first CUDA call",
        hint=_HINTS.get(code, _RELOAD),
        code=code,
        text=live.cuda_error,
        nvidia_uvm=uvm,
        libcuda=lib.path if isinstance(lib, LibCuda) else None,
    )
