"""All CPUs of this job are on a different socket than its GPU.

## Why it matters
Every copy between host and GPU crosses the link between the sockets, and so does the optimizer of a
run with offload. The cause is a scheduler that assigned CPUs and GPUs from different sockets, or a
`taskset` that is still in effect.

## What to do
Request CPUs near the GPUs (in Slurm `--gpu-bind=closest`, `--gres-flags=enforce-binding`), or start
the job with `numactl --cpunodebind`. The deepspeed launcher has `--bind_cores_to_rank`.

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

    A hypervisor may report CPUs that the virtual machine does not have: those do not count.
    """
    near = {
        gpu.index: {cpu for cpu in gpu.cpu_affinity or () if cpu < resources.cpus_logical}
        for gpu in chosen(gpus, run, env)
    }
    used = [gpu for gpu in chosen(gpus, run, env) if near[gpu.index]]
    if not tree.cpus or not used:
        yield skip("the CPUs near the GPUs, or those of this process, are not reported")
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
        hint="request CPUs near the GPUs from the scheduler"
        + (f", or start with `numactl --cpunodebind={node}`" if node is not None else ""),
        gpus=[gpu.index for gpu in far],
        cpus=len(allowed),
        numa_node=node,
    )
