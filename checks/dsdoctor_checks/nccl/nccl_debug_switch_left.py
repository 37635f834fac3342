"""A switch that turns off a part of NCCL is set, as one does for debugging.

## Why it matters
`NCCL_P2P_DISABLE=1` and its like are tried when something hangs, help or not, and then stay in a
start-up file. The job runs, but through slower ways: several times slower between GPUs with NVLink,
ten times between nodes with InfiniBand.

## What to do
Unset it, and set it again only if the trouble comes back.

## References
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (debugging)
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
    NcclFiles,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
)
from dsdoctor_checks._util import chosen, listed

from ._settings import settings

CONDITION = Condition(
    "nccl-debug-switch-left",
    id="DSD804",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)
#: Variable to the value that turns a part off, and the part.
SWITCHES = {
    "NCCL_P2P_DISABLE": ("1", "direct transfers between GPUs"),
    "NCCL_SHM_DISABLE": ("1", "transfers through shared memory"),
    "NCCL_IB_DISABLE": ("1", "InfiniBand and RoCE"),
    "NCCL_NET_GDR_LEVEL": ("LOC", "GPUDirect RDMA"),
    "NCCL_NVLS_ENABLE": ("0", "reductions in NVSwitches"),
    "NCCL_DMABUF_ENABLE": ("0", "GPUDirect RDMA through DMA-BUF"),
}
#: Products without transfers between GPUs: there the switch changes nothing, and accelerate sets
#: it by itself (accelerate 1.15 utils/environment.py; NCCL issue 1637).
WITHOUT_P2P = ("RTX 40", "RTX 50", "L40", "L4", "RTX 4000", "RTX 5000 Ada", "RTX 6000 Ada")


@check(CONDITION)
def nothing_is_turned_off(
    env: Environment,
    run: RunNeeds,
    gpus: Gpus | Missing,
    files: NcclFiles | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges the switches; those that cost nothing on these GPUs are no more than noted."""
    names = [gpu.name or "" for gpu in chosen(gpus, run, env)]
    harmless = bool(names) and all(any(part in name for part in WITHOUT_P2P) for name in names)
    found = settings(env, files, command)
    left = [
        name for name, (off, _) in SWITCHES.items() if name in found and found[name].value == off
    ]
    if harmless:
        left = [name for name in left if name not in ("NCCL_P2P_DISABLE", "NCCL_IB_DISABLE")]
    if not left or len(names) == 1:
        yield ok(variables={name: found[name].value for name in SWITCHES if name in found})
        return
    told = [f"`{name}={found[name].value}`{found[name].where}" for name in left]
    parts = listed(SWITCHES[name][1] for name in left)
    in_files = [found[name].remedy for name in left if found[name].path]
    unset = [name for name in left if not found[name].path]
    hints = ([f"run `unset {' '.join(unset)}`"] if unset else []) + in_files
    yield warn(
        f"{listed(told)} {'turns' if len(left) == 1 else 'turn'} off {parts}, which NCCL uses "
        "by default",
        effect="the job runs, but communication is slower",
        hint=listed(hints),
        variables={name: found[name].value for name in left},
        files=sorted({found[name].path for name in left if found[name].path}),
    )
