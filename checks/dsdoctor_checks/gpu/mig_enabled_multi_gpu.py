"""A run over several GPUs is to use one that is cut into slices (MIG).

## Why it matters
A process sees one MIG slice at most, slices cannot reach each other or other GPUs directly, and
NCCL does not join slices of one GPU. A job over several GPUs needs whole ones.

## What to do
Choose GPUs without MIG with `--gpus`, or switch MIG off: `nvidia-smi -i N -mig 0`.

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
    Missing,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import listed, visible_tokens

from ._util import judged, named

SEVERAL = 2

CONDITION = Condition("mig-enabled-multi-gpu", id="DSD613", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def several_gpus_are_whole(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges runs that ask for several devices, and machines where slices and GPUs mix."""
    found = judged(gpus, run, env)
    sliced = [gpu for gpu in found if gpu.mig_mode]
    tokens = visible_tokens(env) or ()
    wanted = max(len(run.gpus), run.expect_gpus or 0, len(tokens))
    mixed = len(sliced) < len(found)
    if not sliced or (wanted < SEVERAL and not mixed):
        yield ok(sliced=[gpu.index for gpu in sliced])
        return
    one = len(sliced) == 1
    yield warn(
        f"{listed(named(gpu) for gpu in sliced)} {'has' if one else 'have'} MIG on, but the run "
        f"is over {max(wanted, len(found))} devices",
        effect="ranks find one slice or none, and NCCL cannot join slices",
        hint="choose whole GPUs with `--gpus`, or run "
        f"`nvidia-smi -i {','.join(str(gpu.index) for gpu in sliced)} -mig 0` as root",
        sliced=[gpu.index for gpu in sliced],
        devices=max(wanted, len(found)),
    )
