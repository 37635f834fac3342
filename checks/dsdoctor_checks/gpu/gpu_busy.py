"""Other programs use a GPU of this run.

## Why it matters
The memory that they hold is not available to the job. A job that would fit on a free GPU fails with
`CUDA out of memory`, and both programs run slower.

## What to do
Stop the other programs, wait for them, or start the job on other GPUs.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetComputeRunningProcesses, nvmlDeviceGetMemoryInfo
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import listed

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("gpu-busy", id="DSD614", scope=Scope.JOB, since="0.1")

MIB = 1 << 20
PERCENT = 100


class BusyLimits(Limits, frozen=True, kw_only=True):
    """Tolerated use by other programs.

    Attributes:
        max_used_percent: of the memory; doubled for a GPU that drives a display.
        fatal_used_percent: above it, almost nothing is left for the job.
        max_process_mib: a compute process up to this size counts as a monitor, not a job.
    """

    max_used_percent: float = 10
    fatal_used_percent: float = 90
    max_process_mib: float = 256


def _processes(gpu: Gpu, limits: BusyLimits) -> list[int]:
    drawing = {process.pid for process in gpu.processes or () if process.kind == "graphics"}
    return sorted(
        {
            process.pid
            for process in gpu.processes or ()
            if process.kind == "compute"
            and process.pid not in drawing
            and (process.used_bytes or 0) > limits.max_process_mib * MIB
        }
    )


@check(CONDITION)
def gpus_are_free(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: BusyLimits
) -> Iterator[Finding]:
    """Judges used memory and compute processes; MIG devices are shared on purpose."""
    found = judged(gpus, run, env)
    for gpu in found:
        used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
        if used is None or not total:
            continue
        if gpu.mig_mode:
            yield ok("MIG isolates the users of this GPU", gpu=gpu.index)
            continue
        percent = round(PERCENT * used / total)
        pids = _processes(gpu, limits)
        allowed = limits.max_used_percent * (2 if gpu.display_active else 1)
        if percent <= allowed and not pids:
            yield ok(gpu=gpu.index, used_percent=percent)
            continue
        used_mib, total_mib = used // MIB, total // MIB
        yield (fail if percent > limits.fatal_used_percent else warn)(
            f"{used_mib} of {total_mib} MiB ({percent}%) of {named(gpu)} are in use (pid "
            f"{listed(pids)}), but the job expects the GPU to be free"
            if pids
            else f"{used_mib} of {total_mib} MiB ({percent}%) of {named(gpu)} are in use, but the job "
            "expects the GPU to be free",
            effect="the job has that much less memory, and both programs run slower",
            hint="stop the programs that `nvidia-smi` lists, or start the job on other GPUs"
            if pids
            else "start the job on other GPUs, or run `fuser -v /dev/nvidia*` as root on the host: it lists"
            f" programs that `nvidia-smi` does not; if it lists none, run `nvidia-smi --gpu-reset -i {selector(gpu)}`",
            gpu=gpu.index,
            uuid=gpu.uuid,
            used_mib=used_mib,
            total_mib=total_mib,
            used_percent=percent,
            pids=pids,
            max_used_percent=allowed,
        )
    yield from skip_unreported(
        found, lambda gpu: gpu.memory_used_bytes, "memory_used_bytes", "memory use"
    )
