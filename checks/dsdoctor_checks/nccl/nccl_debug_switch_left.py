"""A debugging switch disables part of NCCL.

## Why it matters
People set `NCCL_P2P_DISABLE=1` and similar switches when something hangs, and then leave them in a
startup file. The job runs, but over slower paths: several times slower between GPUs with NVLink, ten
times between nodes with InfiniBand.

## What to do
Unset the variable. Set it again only if the problem recurs.

## References
- https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/env.html (debugging)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    LaunchCommand,
    Missing,
    NcclFiles,
    RunNeeds,
    Scope,
    check,
    ok,
    warn,
    without_fix,
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
#: Variable to the values that disable a part, and the part. A level can be a number too
#: (NCCL's page on these variables, "Integer Values (Legacy)": 0 is `LOC`).
SWITCHES = {
    "NCCL_P2P_DISABLE": (("1",), "direct transfers between GPUs"),
    "NCCL_P2P_LEVEL": (("LOC", "0"), "direct transfers between GPUs"),
    "NCCL_SHM_DISABLE": (("1",), "transfers through shared memory"),
    "NCCL_IB_DISABLE": (("1",), "InfiniBand and RoCE"),
    "NCCL_NET_GDR_LEVEL": (("LOC", "0"), "GPUDirect RDMA"),
    "NCCL_NVLS_ENABLE": (("0",), "reductions in NVSwitches"),
    "NCCL_DMABUF_ENABLE": (("0",), "GPUDirect RDMA through DMA-BUF"),
}
#: Products without peer access: the switch changes nothing there, and accelerate sets it on its own
#: (accelerate 1.15 utils/environment.py; NCCL issue 1637).
WITHOUT_P2P = ("RTX 40", "RTX 50", "L40", "L4", "RTX 4000", "RTX 5000 Ada", "RTX 6000 Ada")
#: GeForce cards whose peer access needs a bridge (NCCL issue 1127, TensorFlow issue 24677).
OVER_BRIDGE_ONLY = ("GeForce RTX 20", "GeForce RTX 30", "TITAN RTX")
UNUSED_WITHOUT_P2P = ("NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL", "NCCL_IB_DISABLE")


def _has_no_peers(gpu: Gpu) -> bool:
    """Whether the product has no peer access, or only over a bridge that is not there."""
    name = gpu.name or ""
    bare = gpu.links is not None and not gpu.active_links
    without = (*WITHOUT_P2P, *OVER_BRIDGE_ONLY) if bare else WITHOUT_P2P
    return any(part in name for part in without)


@check(CONDITION)
def nothing_is_disabled(
    env: Environment,
    run: RunNeeds,
    gpus: Gpus,
    files: NcclFiles | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges the switches; those that cost nothing on these GPUs are only noted."""
    used = chosen(gpus, run, env)
    names = [gpu.name or "" for gpu in used]
    harmless = bool(used) and all(map(_has_no_peers, used))
    found = settings(env, files, command)
    left = [
        name for name, (off, _) in SWITCHES.items() if name in found and found[name].value in off
    ]
    if harmless:
        left = [name for name in left if name not in UNUSED_WITHOUT_P2P]
    if not left or len(names) == 1:
        yield ok(variables={name: found[name].value for name in SWITCHES if name in found})
        return
    shown = [f"`{name}={found[name].value}`{found[name].where}" for name in left]
    parts = listed(dict.fromkeys(SWITCHES[name][1] for name in left))
    elsewhere = [found[name].remedy for name in left if not found[name].of_environment]
    unset = [name for name in left if found[name].of_environment]
    hints = ([f"run `unset {' '.join(unset)}`"] if unset else []) + elsewhere
    finding = warn(
        f"{listed(shown)} {'disables' if len(left) == 1 else 'disable'} {parts}, which NCCL uses "
        "by default",
        effect="the job runs, but communication is slower",
        hint=listed(hints),
        variables={name: found[name].value for name in left},
        files=sorted({found[name].path for name in left if found[name].path}),
    )
    # a file and a command are the reader's to change
    yield finding if unset else without_fix(finding)
