"""The chosen GPUs are connected more slowly than other free GPUs of this node.

## Why it matters
A collective is as fast as the slowest hop of its ring. Two GPUs on different sockets use the link
between the processors, while their neighbors may have NVLink: ten times the bandwidth for the same
number of GPUs.

## What to do
Choose the GPUs named in the finding, or pick others from the matrix of `dsdoctor check -v`.

## References
- NCCL src/graph: rings are searched for their slowest hop
- nvml.h of CUDA 13.5: nvmlDeviceGetTopologyCommonAncestor, nvmlDeviceGetNvLinkRemotePciInfo
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    GpuTopology,
    Missing,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, listed, variable

from ._ring import best_ring, better_set

CONDITION = Condition("gpu-subset-slow", id="DSD703", scope=Scope.JOB, since="0.1")

SEVERAL = 2
#: Memory use up to which a GPU counts as free, in percent.
FREE_PERCENT = 10


def _free(gpu: Gpu) -> bool:
    used, total = gpu.memory_used_bytes or 0, gpu.memory_total_bytes or 0
    return gpu.error is None and not gpu.mig_mode and used * 100 <= total * FREE_PERCENT


@check(CONDITION)
def subset_is_close(
    gpus: Gpus, topology: GpuTopology, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges GPUs that the user chose; a scheduler's choice is only noted."""
    # a GPU that does not answer takes no part, and a paste may know no index of it
    used = [gpu for gpu in chosen(gpus, run, env) if not gpu.mig_mode and gpu.error is None]
    indices = [gpu.index for gpu in used]
    if len(indices) < SEVERAL:
        yield skip("the run has no pair of GPUs")
        return
    ring, worst = best_ring(topology, indices)
    drawn = "-".join(str(index) for index in (*ring, ring[0]))
    names = {gpu.name for gpu in used}
    others = [gpu.index for gpu in gpus.gpus if gpu.name in names and _free(gpu)]
    asked = bool(run.gpus) and variable(env, "SLURM_JOB_ID") is None
    better = better_set(topology, indices, others) if asked and len(names) == 1 else None
    if better is None:
        yield ok(f"ring {drawn}, slowest hop {worst or 'unknown'}", ring=list(ring), slowest=worst)
        return
    group, best = better
    numbers = ",".join(str(index) for index in group)
    yield warn(
        f"the ring over GPUs {listed(indices)} has {worst} as its slowest hop, but GPUs "
        f"{listed(group)} are free and would have {best}",
        effect="collectives of the job are slower than this node allows",
        hint=f"start the job on GPUs {listed(group)}: `--include localhost:{numbers}` of the deepspeed "
        f"launcher, or `CUDA_DEVICE_ORDER=PCI_BUS_ID CUDA_VISIBLE_DEVICES={numbers}`",
        gpus=indices,
        ring=list(ring),
        slowest=worst,
        better=list(group),
        better_slowest=best,
    )
