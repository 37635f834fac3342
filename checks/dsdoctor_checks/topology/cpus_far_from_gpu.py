"""The CPUs that this job may use are all on another socket than its GPU.

## Why it matters
Every copy between host and GPU then crosses the link between the sockets, and so does the optimizer
of an offloading run. A scheduler that gave CPUs and GPUs of different sockets, or a `taskset` of
another job, does that.

## What to do
Ask the scheduler for CPUs near the GPUs (`--gpu-bind=closest`, `--gres-flags=enforce-binding` in
Slurm), or start with `numactl --cpunodebind`; the deepspeed launcher has `--bind_cores_to_rank`.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetCpuAffinity
- deepspeed/utils/numa.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    PciTree,
    Resources,
    RunNeeds,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, listed

CONDITION = Condition("cpus-far-from-gpu", id="DSD706", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def cpus_are_near(
    tree: PciTree, gpus: Gpus, resources: Resources, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Compares the CPUs of this process with those near each GPU of the run.

    A hypervisor may tell of CPUs that the virtual machine has not got: those do not count.
    """
    near = {
        gpu.index: {cpu for cpu in gpu.cpu_affinity or () if cpu < resources.cpus_logical}
        for gpu in chosen(gpus, run, env)
    }
    used = [gpu for gpu in chosen(gpus, run, env) if near[gpu.index]]
    if not tree.cpus or not used:
        yield skip("CPUs near the GPUs, or those of this process, are not told")
        return
    allowed = set(tree.cpus)
    far = [gpu for gpu in used if not allowed & near[gpu.index]]
    if not far:
        yield ok(cpus=len(allowed))
        return
    node = far[0].numa_node
    one = len(far) == 1
    yield warn(
        f"this job may use {len(allowed)} CPUs, but none of them is near "
        f"{'GPU' if one else 'GPUs'} {listed(gpu.index for gpu in far)}"
        + (f" (NUMA node {node})" if node is not None else ""),
        effect="every copy to and from the GPU crosses the link between the sockets",
        hint="ask the scheduler for CPUs near the GPUs"
        + (f", or start with `numactl --cpunodebind={node}`" if node is not None else ""),
        gpus=[gpu.index for gpu in far],
        cpus=len(allowed),
        numa_node=node,
    )
