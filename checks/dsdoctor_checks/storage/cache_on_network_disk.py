"""A job on several nodes builds its kernels in one directory on a network file system.

## Why it matters
All nodes build the same op in the same directory at the same time. Locks are not reliable across
nodes, so a node may load a library that another one is still writing. A node with a different GPU or
compiler loads a library that was not built for it. A lock that a killed job left behind blocks all
nodes.

## What to do
Set `TORCH_EXTENSIONS_DIR` and `TRITON_CACHE_DIR` to a local disk of each node
(`/tmp/$USER/torch_extensions`), or build the ops in advance (`DS_BUILD_OPS=1`).

## References
- DeepSpeed 0.19.8 ops/transformer/inference/triton/matmul_ext.py: warning on a cache on NFS
- torch/utils/cpp_extension.py: `FileBaton`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Hostfile,
    LaunchCommand,
    Missing,
    Scope,
    Storage,
    check,
    ok,
    warn,
    whole,
)
from dsdoctor_checks._util import variable

from ._util import name

CONDITION = Condition(
    "cache-on-network-disk",
    id="DSD1504",
    scope=Scope.JOB,
    since="0.1",
    leads_to=("jit-build-stale-lock",),
)
_BUILT = {"built extensions": "TORCH_EXTENSIONS_DIR", "Triton cache": "TRITON_CACHE_DIR"}


def nodes(
    env: Environment | Missing, command: LaunchCommand | Missing, hostfile: Hostfile | Missing
) -> int:
    """Number of nodes of the job, as far as it is known; at least one."""
    counts = [1]
    if isinstance(command, LaunchCommand):
        counts.append(command.num_nodes or 1)
    if isinstance(hostfile, Hostfile) and hostfile.asked:
        counts.append(len(hostfile.entries))
    counts.append(whole(variable(env, "SLURM_JOB_NUM_NODES") or "") or 1)
    return max(counts)


@check(CONDITION)
def builds_are_local(
    storage: Storage,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
) -> Iterator[Finding]:
    """Warns about build directories that the nodes of the job share."""
    count = nodes(env, command, hostfile)
    shared = [place for place in storage.places if place.network and place.purpose in _BUILT]
    if count == 1 or not shared:
        yield ok(nodes=count, shared=[place.path for place in shared])
        return
    for place in shared:
        yield warn(
            f"{name(place)} is on a network file system ({place.file_system}), but the job has {count} nodes",
            effect="nodes build in one directory at the same time and load incomplete libraries",
            hint=f"set `{_BUILT[place.purpose]}` to a directory on a local disk",
            path=place.path,
            mount=place.mount,
            file_system=place.file_system,
            nodes=count,
        )
