"""A run over several GPUs would use one in MIG mode.

## Why it matters
A process sees at most one MIG device. MIG devices cannot reach each other or other GPUs directly, and
NCCL does not connect two MIG devices of one GPU. A job over several GPUs needs whole GPUs.

## What to do
Start the job on GPUs without MIG, or disable MIG: `nvidia-smi -i N -mig 0`.

## References
- https://docs.nvidia.com/datacenter/tesla/mig-user-guide/
- nvml.h of CUDA 13.5: nvmlDeviceGetMigMode
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Missing,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import job_environment, listed, visible_tokens

from ._util import judged, named, selector, without_instance

SEVERAL = 2

CONDITION = Condition("mig-enabled-multi-gpu", id="DSD613", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def several_gpus_are_whole(
    gpus: Gpus,
    run: RunNeeds,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """Judges runs over several devices, and machines that mix MIG and whole GPUs.

    A GPU without any MIG device has a condition of its own.
    """
    found = judged(gpus, run, env)
    sliced = [gpu for gpu in found if gpu.mig_mode and not without_instance(gpu)]
    tokens = visible_tokens(job_environment(env, command)) or ()
    ranks = 0 if isinstance(command, Missing) else command.num_gpus or 0
    wanted = max(len(run.gpus), run.expect_gpus or 0, len(tokens), ranks)
    mixed = len(sliced) < len(found) and not (wanted < SEVERAL and _is_one_process(command))
    if not sliced or (wanted < SEVERAL and not mixed):
        yield ok(sliced=[gpu.index for gpu in sliced])
        return
    seen = len(live.devices) if isinstance(live, TorchLive) and live.cuda_ok else None
    yield (fail if seen is not None and seen < ranks and not mixed else warn)(
        f"MIG is enabled on {listed(named(gpu) for gpu in sliced)}, but the run uses "
        f"{max(wanted, len(found))} devices",
        effect="each rank sees one MIG device or none, and NCCL cannot connect them",
        hint="start the job on GPUs without MIG, or run "
        f"`nvidia-smi -i {','.join(map(selector, sliced))} -mig 0` as root",
        sliced=[gpu.index for gpu in sliced],
        devices=max(wanted, len(found)),
        seen=seen,
    )


def _is_one_process(command: LaunchCommand | Missing) -> bool:
    """Whether the command starts a single process, which uses one device unless it says otherwise."""
    if isinstance(command, Missing):
        return False
    return command.num_gpus == 1 or command.by_python_alone
