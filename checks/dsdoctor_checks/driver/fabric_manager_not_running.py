"""The NVLink fabric of an NVSwitch machine is not initialized.

## Why it matters
On boards with NVSwitch, no CUDA program starts (error 802, system not yet initialized) until the
fabric manager has configured the switches and every GPU has registered. The fabric manager must
have exactly the driver's version.

## What to do
Start `nvidia-fabricmanager` in the driver's version. Boards with B100 or B200 need NVLSM as well. In
a virtual machine or container, this has to happen on the host.

## References
- nvml.h, `nvmlGpuFabricInfoV_t`
- driver_types.h: `cudaErrorSystemNotReady` (802)
- https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    FabricManager,
    FabricState,
    Finding,
    Gpu,
    Gpus,
    Level,
    Missing,
    NotStated,
    Nvml,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import chosen, cuda_works
from dsdoctor_checks._where import on_host
from dsdoctor_checks.driver import _tables
from dsdoctor_checks.gpu._util import named

from ._fabric import has_switches

CONDITION = Condition(
    "fabric-manager-not-running",
    id="DSD109",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("cuda-init-driver-state",),
    narrower=("fabric-manager-version-mismatch",),
)
#: In the names of products that are cards for a slot.
_CARDS = ("PCIE", "NVL", "RTX")
#: Superchips of a rack, whose NVLink switches are machines of their own; the fabric manager runs there
#: (NVIDIA GB200 NVL Multi-Node Tuning Guide, 2025).
_RACK = re.compile(r"\bGB[23]00\b")
_IN_RACK = (
    "on such a rack the fabric manager runs on a switch tray, not on this node: read its log there; after"
    " it has recovered, reset the GPUs of this node, or reboot it"
)
_WORDS = {
    FabricState.NOT_STARTED: "not started",
    FabricState.IN_PROGRESS: "in progress",
    FabricState.COMPLETED: "completed with an error",
}


@check(CONDITION)
def fabric_is_up(
    gpus: Gpus | Missing,
    nvml: Nvml | Missing,
    live: TorchLive | Missing,
    env: Environment | Missing,
    run: RunNeeds,
    manager: FabricManager | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges CUDA's error, then each GPU's registration; a GPU in MIG mode needs no fabric.

    Ampere GPUs do not report a registration, so the fabric manager's process is looked for.
    """
    if cuda_works(live):
        return
    code = live.cuda_error_code if isinstance(live, TorchLive) else None
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    used = [gpu for gpu in chosen(gpus, run, env) if not gpu.mig_mode]
    pending = [
        gpu
        for gpu in used
        if (
            gpu.fabric.state in (FabricState.NOT_STARTED, FabricState.IN_PROGRESS)
            or (gpu.fabric.state == FabricState.COMPLETED and gpu.fabric.status)
        )
    ]
    joined = any(gpu.fabric.state == FabricState.COMPLETED for gpu in used)
    unserved = (
        bool(used)
        and not joined
        and isinstance(manager, FabricManager)
        and manager.running is False
        and has_switches(manager, gpus)
    )
    if not pending and not unserved and (code != _tables.NOT_READY or _no_fabric(used, manager)):
        return
    if unserved:
        text = (
            f"no `nv-fabricmanager` process is running, but the {_switches(manager)}NVSwitches of"
            " this machine need one"
        )
    elif pending:
        first = pending[0]
        state = _WORDS[FabricState(first.fabric.state or 0)]
        text = (
            f"the fabric registration of {named(first)} is {state},"
            f" but it must be completed on every GPU"
        )
    else:
        text = f"CUDA initialization fails with error {code} (system not yet initialized)"
    what = (
        "install `nvidia-fabricmanager`, and run `systemctl enable --now nvidia-fabricmanager`"
        if unserved and _is_absent(manager)
        else "run `systemctl start nvidia-fabricmanager`"
    )
    if pending and all(_RACK.search(gpu.name or "") for gpu in pending):
        hint = _IN_RACK
    else:
        hint = f"{what}{on_host(os)}; its version must be the driver's"
        hint += f" ({driver})" if driver else ""
    yield fail(
        text,
        effect="CUDA initialization fails with error 802; every rank exits at startup",
        hint=hint,
        error=_tables.NOT_READY,
        cuda_error_code=code,
        gpus=[gpu.index for gpu in pending],
        states=[gpu.fabric.state for gpu in pending],
        driver=driver,
    )


def _is_absent(manager: FabricManager | Missing) -> bool:
    """Whether no `nv-fabricmanager` that reports its version is installed here."""
    try:
        return isinstance(manager, FabricManager) and manager.version is None
    except NotStated:
        return False


def _switches(manager: FabricManager | Missing) -> str:
    """Their number with a space; "" if a paste does not tell it."""
    try:
        return f"{manager.switches} " if isinstance(manager, FabricManager) else ""
    except NotStated:
        return ""


def _no_fabric(used: list[Gpu], manager: FabricManager | Missing) -> bool:
    """Whether all GPUs are cards for a slot without NVLinks: no switch connects them."""
    if not used or (isinstance(manager, FabricManager) and manager.switches):
        return False
    return not any(gpu.links for gpu in used) and all(
        any(word in (gpu.name or "").upper() for word in _CARDS) for gpu in used
    )


HINT = "run `sudo systemctl restart nvidia-fabricmanager`; its version must be the driver's"

#: Cards that no board with NVSwitches carries.
_GEFORCE = ("GeForce",)

SIGNATURES = (
    Signature(
        pattern="(?i)nvidia-fabric ?manager.{0,80}(?:fail|error)|Failed to start NVIDIA fabric manager",
        source="NVIDIA Fabric Manager 450-590; systemd 220-257 src/core/job.c",
        examples=(
            "systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE",
            "nvidia-fabricmanager ... error",
            "systemd[1]: Failed to start NVIDIA fabric manager service.",
        ),
        not_examples=("nvidia-fabricmanager.service: Succeeded",),
        level=Level.CERTAIN,
        requires=_GEFORCE,
        message="The fabric manager cannot start, since no board of GeForce cards has an NVSwitch",
        hint="run `sudo systemctl disable --now nvidia-fabricmanager`: these GPUs need none",
    ),
    # before the other lines of the service: they do not say why it stops
    Signature(
        pattern=r"NVSwitch driver failed with error:.{0,30}NV_WARN_NOTHING_TO_DO",
        source="NVIDIA Fabric Manager 535-590 nv-fabricmanager",
        examples=(
            "nv-fabricmanager: request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do [NV_WARN_NOTHING_TO_DO]",
        ),
        not_examples=(
            "request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
        message="The fabric manager finds no NVSwitch that it could configure",
        hint="on a machine without NVSwitches, run `sudo systemctl disable --now nvidia-fabricmanager`: its GPUs need none; on HGX B200 and later, install NVLSM",
    ),
    Signature(
        pattern="(?i)system not yet initialized",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
            "torch.AcceleratorError: CUDA error: system not yet initialized",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="(?i)cudaErrorSystemNotReady",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=("cudaErrorSystemNotReady",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="(?i)CUDA_ERROR_SYSTEM_NOT_READY(?! ?=)",
        source="CUDA 10.2-13.0 cuda.h, cuGetErrorName",
        examples=("RuntimeError: operation cuInit(0) failed: CUDA_ERROR_SYSTEM_NOT_READY",),
        not_examples=("CUDA_ERROR_SYSTEM_NOT_READY = 802,",),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="(?i)fabric ?manager.{0,80}(?:not running|fail|mismatch|not matching|do(?:es)? ?n.t match|error)",
        source="NVIDIA Fabric Manager 450-590 nv-fabricmanager; nvidia-smi",
        examples=(
            "nv-fabricmanager: fabric manager NVIDIA GPU driver interface version 550.54.15 don't match with driver version 550.90.07",
            "fabricmanager ... not running",
            "systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE",
            "fabricmanager ... mismatch",
            "fabricmanager ... not matching",
            "fabricmanager ... error",
        ),
        not_examples=("fabric manager is running",),
        level=Level.CERTAIN,
        unless=_GEFORCE,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern="(?i)Error 802",
        source="torch 1.8-2.13 c10/cuda/CUDAFunctions.cpp, with cudart's words for error 802",
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ),
        level=Level.CERTAIN,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    Signature(
        pattern=r"Failed to bind NVLink SHARP \(NVLS\) Multicast",
        source="nccl 2.27-2.32 src/transport/nvls.cc",
        examples=(
            "NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 2097152 : CUDA error 401 'the operation cannot be performed in the present state'",
            "transport/nvls.cc:170 NCCL WARN Failed to bind NVLink SHARP (NVLS) Multicast memory of size 4 : CUDA error 1 'x'",
        ),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
    Signature(
        pattern="Failed to start NVIDIA fabric manager|request to query NVSwitch device information .{0,60}failed|detected NVSwitch.{0,80}fabric manager|NVSwitch driver failed with error",
        source=(
            "systemd 220-257 src/core/job.c (unit nvidia-fabricmanager); NVIDIA Fabric Manager "
            "450-590 nv-fabricmanager"
        ),
        examples=(
            "systemd[1]: Failed to start NVIDIA fabric manager service.",
            "request to query NVSwitch device information from NVSwitch driver failed with error:WARNING Nothing to do",
            "detected NVSwitch ... fabric manager",
        ),
        not_examples=("request to query NVSwitch device information from NVSwitch driver",),
        level=Level.CERTAIN,
        unless=_GEFORCE,
        masks=("no-gpu-visible", "cuda-init-driver-state"),
    ),
    # memory shared over NVSwitch, which the fabric manager configures
    Signature(
        pattern=r"transport/nvls\.cc:\d{1,5} NCCL WARN (?:Cuda failure|CUDA failure|Failed)",
        source="nccl 2.17-2.32 src/transport/nvls.cc, src/include/checks.h",
        examples=(
            "transport/nvls.cc:244 NCCL WARN Cuda failure 1 'invalid argument'",
            "node-1:1:2 [3] transport/nvls.cc:254 NCCL WARN Cuda failure 401 'the operation cannot be performed in the present state'",
            "transport/nvls.cc:7 NCCL WARN CUDA failure",
            "transport/nvls.cc:7 NCCL WARN Failed",
        ),
        not_examples=("node-1:1:2 [2] NCCL INFO transport/nvls.cc:394 -> 1",),
        level=Level.STRONG,
        masks=("nccl-timeout-watchdog", "nccl-unhandled-cuda-error", "rendezvous-timeout"),
    ),
)
