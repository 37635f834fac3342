"""A job of several nodes builds its kernels in one folder on a network file system.

## Why it matters
All nodes then build the same op in the same folder at the same time. Locks reach the other nodes
late or not at all, so one may load a library that another is still writing, and a node with another
GPU or compiler takes what does not fit it. A lock that a killed job left stops all of them.

## What to do
Point `TORCH_EXTENSIONS_DIR` and `TRITON_CACHE_DIR` at a local disk of each node
(`/tmp/$USER/torch_extensions`), or build the ops beforehand (`DS_BUILD_OPS=1`).

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
    """How many nodes the job has, as far as anybody said so; at least one."""
    told = [1]
    if isinstance(command, LaunchCommand):
        told.append(command.num_nodes or 1)
    if isinstance(hostfile, Hostfile) and hostfile.asked:
        told.append(len(hostfile.entries))
    value = variable(env, "SLURM_JOB_NUM_NODES") or ""
    if value.isdecimal():
        told.append(int(value))
    return max(told)


@check(CONDITION)
def builds_are_local(
    storage: Storage,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
) -> Iterator[Finding]:
    """Folders of built kernels against the file systems that they lie on."""
    count = nodes(env, command, hostfile)
    shared = [place for place in storage.places if place.network and place.purpose in _BUILT]
    if count == 1 or not shared:
        yield ok(nodes=count, shared=[place.path for place in shared])
        return
    for place in shared:
        yield warn(
            f"{name(place)} is on {place.file_system}, and the job has {count} nodes",
            effect="nodes build into one folder at once: half-written libraries, locks that stay",
            hint=f"set `{_BUILT[place.purpose]}` to a folder on a disk of the node",
            path=place.path,
            mount=place.mount,
            file_system=place.file_system,
            nodes=count,
        )
