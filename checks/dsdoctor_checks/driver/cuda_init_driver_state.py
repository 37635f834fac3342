"""CUDA does not initialize because the driver is in a bad state.

## Why it matters
A driver and a GPU are present, but CUDA cannot use them. Typical causes: its unified-memory module is not loaded, the machine
resumed from suspend, the fabric manager is not running, or a toolkit's stub library is loaded
instead of libcuda. Every rank exits at its first CUDA call.

## What to do
Reload the module (`modprobe -r nvidia_uvm && modprobe nvidia_uvm`) or reboot. For error 34, remove
the toolkit's `stubs` folder from `LD_LIBRARY_PATH`. If error 3 persists although `nvidia-smi`
works, turn HMM off: some kernels with address randomization (KASLR), such as RHEL 9's, leave no
room for it. Write `options nvidia_uvm uvm_disable_hmm=1` into `/etc/modprobe.d/uvm.conf` and reload
the module, or boot with `nokaslr`. For error 805, restart the MPS server. In a confidential virtual
machine, CUDA fails with error 802 until `nvidia-smi conf-compute -srs 1` has set the GPU to the
ready state.

## References
- driver_types.h: errors 3, 34, 802, 803, 805 and 999
- https://github.com/pytorch/pytorch/issues/35710
- https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/ (CUDA 12.8 to 13.2: initialization with KASLR)
- https://docs.nvidia.com/confidential-computing/ (`nvidia-smi conf-compute -srs 1`)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    KernelLog,
    LibCuda,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import driver_answers, driver_loaded, gpu_expected, numbers
from dsdoctor_checks.driver import _cuda_init_driver_state_signatures, _tables

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
        "libcuda-unusable",
        "gpu-lost",
        "gpu-reset-required",
        "mig-without-instance",
        "wsl-driver-unavailable",
    ),
)
_UNINITIALIZED, _STUB, _MPS, _UNKNOWN = 3, 34, 805, 999
_STATES = (_UNINITIALIZED, _STUB, _tables.NOT_READY, _tables.MISMATCH, _MPS, _UNKNOWN)
_HINTS = {
    _STUB: "remove the toolkit's `stubs` folder from `LD_LIBRARY_PATH`",
    _tables.NOT_READY: "in a confidential virtual machine, run `nvidia-smi conf-compute -srs 1` as root;"
    " on a board with NVSwitches, start the fabric manager on its host",
    _MPS: "restart the MPS server with `nvidia-cuda-mps-control -d`, or unset `CUDA_MPS_*`",
}
_HMM = (
    "turn HMM off: write `options nvidia_uvm uvm_disable_hmm=1` into `/etc/modprobe.d/uvm.conf`, and reload the"
    " module with `modprobe -r nvidia_uvm && modprobe nvidia_uvm`, or reboot"
)
_LOAD = "load the module as root with `modprobe nvidia_uvm`, or with `nvidia-modprobe -c 0 -u`"
_RELOAD = "reload the module with `modprobe -r nvidia_uvm && modprobe nvidia_uvm`, or reboot"


@check(CONDITION)
def driver_state_is_good(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    lib: LibCuda | Missing,
    log: KernelLog | Missing,
    nvml: Nvml | Missing,
) -> Iterator[Finding]:
    """Fails on the CUDA errors that mean a bad driver state, if a driver is loaded."""
    code = live.cuda_error_code
    if live.cuda_ok is not False or code not in _STATES:
        return
    known = driver_loaded(kernel) or (isinstance(kernel, Missing) and driver_answers(nvml))
    if not known and not gpu_expected(RunNeeds(), kernel, gpus):
        return
    compat = lib.version if isinstance(lib, LibCuda) and lib.compat else None
    module = None if isinstance(kernel, Missing) else kernel.module_version
    if code == _tables.MISMATCH and compat and module and numbers(compat) < numbers(module):
        yield fail(
            f"CUDA initialization fails with error {code} ({_tables.NAMES[code]}): `cuda-compat` libcuda"
            f" {compat} would be loaded, which is older than driver {module}",
            effect="every rank exits at its first CUDA call",
            hint="remove the compat folder from `LD_LIBRARY_PATH`; if its path is in `/etc/ld.so.conf.d`,"
            " remove that file and run `ldconfig`",
            code=code,
            text=live.cuda_error,
            libcuda=lib.path if isinstance(lib, LibCuda) else None,
            compat=compat,
            driver=module,
        )
        return
    if isinstance(log, KernelLog) and log.hmm_failed and code not in (_STUB, _MPS):
        yield fail(
            f"CUDA initialization fails with error {code} ({_tables.NAMES[code]}), and `nvidia_uvm` found no"
            f" addresses for HMM (`request_free_mem_region() err` in `{log.source}`)",
            effect="every rank exits at its first CUDA call",
            hint=f"{_HMM}; or boot with `nokaslr`",
            code=code,
            text=live.cuda_error,
            hmm_failed=True,
        )
        return
    uvm = isinstance(kernel, Missing) or "nvidia_uvm" in kernel.modules
    lacking = "" if uvm else ", and the `nvidia_uvm` module is not loaded"
    if uvm and code == _UNKNOWN and _lacks_uvm_node(kernel):
        yield fail(
            f"CUDA initialization fails with error {code} ({_tables.NAMES[code]}), and `/dev/nvidia-uvm`"
            " does not exist",
            effect="every rank exits at its first CUDA call",
            hint="run `nvidia-modprobe -c 0 -u` as root; in a container, do so on its host, and start it"
            " with `--gpus all` or `--device /dev/nvidia-uvm`",
            code=code,
            text=live.cuda_error,
            nvidia_uvm=uvm,
        )
        return
    yield fail(
        f"CUDA initialization fails with error {code} ({_tables.NAMES[code]}){lacking},"
        " although a driver is loaded",
        effect="every rank exits at its first CUDA call",
        hint=f"{_RELOAD}; if that does not help, {_HMM}"
        if code == _UNINITIALIZED and isinstance(kernel, NvidiaKernel) and kernel.uvm_hmm
        else _HINTS.get(code, _RELOAD if uvm else _LOAD),
        code=code,
        text=live.cuda_error,
        nvidia_uvm=uvm,
        libcuda=lib.path if isinstance(lib, LibCuda) else None,
    )


def _lacks_uvm_node(kernel: NvidiaKernel | Missing) -> bool:
    """Whether there are device files of GPUs and none of unified memory, which CUDA needs."""
    try:
        nodes = () if isinstance(kernel, Missing) else kernel.device_nodes
    except NotStated:
        return False
    return any(re.fullmatch(r"nvidia\d+", node) for node in nodes) and "nvidia-uvm" not in nodes


HINT = (
    "run `sudo modprobe -r nvidia_uvm && sudo modprobe nvidia_uvm`, or reboot; if it fails again, check"
    " `dmesg`; for WSL, run `wsl --shutdown` in Windows instead"
)

SIGNATURES = _cuda_init_driver_state_signatures.SIGNATURES
