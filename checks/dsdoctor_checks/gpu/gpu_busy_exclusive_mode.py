"""A GPU's compute mode keeps this job off the GPU.

## Why it matters
A GPU in exclusive mode accepts one process; in prohibited mode it accepts none. Any further process
fails with `CUDA-capable device(s) is/are busy or unavailable` (error 46).

## What to do
Stop the process that holds the GPU, or restore the default mode: `nvidia-smi -i N -c 0`.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetComputeMode
- CUDA driver_types.h: cudaErrorDevicesUnavailable
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    ComputeMode,
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import listed, variable

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("gpu-busy-exclusive-mode", id="DSD615", scope=Scope.NODE, since="0.1")

EXCLUSIVE = (ComputeMode.EXCLUSIVE_PROCESS, ComputeMode.EXCLUSIVE_THREAD)
MIB = 1 << 20
#: More than the driver keeps of an idle GPU, also where it does not report its reserve apart.
_OF_A_PROCESS = 768 * MIB


@check(CONDITION)
def mode_lets_the_job_in(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """Judges the compute mode and, in exclusive mode, whether a process holds the GPU.

    With MPS, the process that holds it is the server, which lets the job's processes in.
    """
    shared = variable(env, "CUDA_MPS_PIPE_DIRECTORY") is not None or _all_let_in(live)
    found = judged(gpus, run, env)
    for gpu in found:
        mode = gpu.compute_mode
        pids = sorted({one.pid for one in gpu.processes or () if one.kind == "compute"})
        if mode == ComputeMode.PROHIBITED:
            what = f"{named(gpu)} is in compute mode PROHIBITED, but the job needs it"
        elif mode in EXCLUSIVE and pids and not shared and not _of_mps(gpu):
            what = (
                f"{named(gpu)} is in an exclusive compute mode and is held by process "
                f"{listed(pids)}, but the job needs it"
            )
        elif mode in EXCLUSIVE and not pids and not shared and (held := _held(gpu)):
            what = (
                f"{named(gpu)} is in an exclusive compute mode, and {held} MiB of its memory are in "
                "use, so a process that is not listed holds it"
            )
        else:
            yield ok(gpu=gpu.index, compute_mode=mode)
            continue
        told = bool(pids) or mode == ComputeMode.PROHIBITED
        yield (fail if told else warn)(
            what,
            effect="CUDA fails with `device(s) is/are busy or unavailable` (error 46)",
            hint=("stop the process, or " if mode != ComputeMode.PROHIBITED else "")
            + f"run `nvidia-smi -i {selector(gpu)} -c 0` as root",
            gpu=gpu.index,
            uuid=gpu.uuid,
            compute_mode=mode,
            pids=pids,
            used_mib=None if told else held,
        )
    yield from skip_unreported(
        found, lambda gpu: gpu.compute_mode, "compute_mode", "the compute mode"
    )


def _all_let_in(live: TorchLive | Missing) -> bool:
    """Whether torch has used every device that it sees."""
    if not isinstance(live, TorchLive) or not live.devices:
        return False
    return all(device.tried and device.ok for device in live.devices)


def _held(gpu: Gpu) -> int | None:
    """MiB in use on a GPU whose process is hidden, as in a container; None if none is."""
    used = gpu.memory_used_bytes
    if gpu.display_active or gpu.processes or used is None:
        return None
    return used // MIB if used - (gpu.memory_reserved_bytes or 0) > _OF_A_PROCESS else None


def _of_mps(gpu: Gpu) -> bool:
    """Whether processes use it through the server of MPS."""
    return any(one.kind == "mps" for one in gpu.processes or ())


HINT = "stop the other process, or restore the default compute mode: `nvidia-smi -c 0` as root"

SIGNATURES = (
    Signature(
        pattern=r"(?i)devices?(?:\(s\))? (?:is|are|is/are) busy or unavailable",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable",
            "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable",
            "device is busy or unavailable",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?i)DevicesUnavailable",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName",
        examples=(
            "Search for `cudaErrorDevicesUnavailable' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern="(?i)DEVICE_UNAVAILABLE",
        source="CUDA 10.1-13.0 cuda.h, cuGetErrorName",
        examples=("DEVICE_UNAVAILABLE",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"(?i)runtime error \(46\)",
        source="torch 0.3-1.12 THC/THCGeneral.cpp, aten/src/THC",
        examples=(
            "RuntimeError: cuda runtime error (46) : all CUDA-capable devices are busy or unavailable at /pytorch/aten/src/THC/THCTensorRandom.cu:25",
        ),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"exclusive-thread device already in use|runtime error \(54\)",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=(
            "RuntimeError: CUDA error: exclusive-thread device already in use by a different thread",
            "RuntimeError: cuda runtime error (54) : exclusive-thread device already in use by a different thread at x.cpp:12",
        ),
        level=Level.CERTAIN,
    ),
)
