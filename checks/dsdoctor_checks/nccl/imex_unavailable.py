"""NCCL cannot use NVLink between nodes, because IMEX is not available.

## Why it matters
In racks such as GB200 NVL72 and GB300 NVL72, NVLink connects the GPUs of all nodes. For a run over several
nodes, NCCL allocates memory that other nodes can map. The driver grants it only to processes that can open
an IMEX channel, a device node that is not created by default, and the `nvidia-imex` services of the nodes
have to be connected with each other. Otherwise, NCCL stops with `unhandled system error` and the words
"MNNVL is available but not working". Runs on one node need neither.

## What to do
On every node, create the channel: set `NVreg_CreateImexChannel0=1` for the `nvidia` kernel module, or create
`/dev/nvidia-caps-imex-channels/channel0` with `mknod`. Then start `nvidia-imex`, in the driver's version and
with the same `nodes_config.cfg` on all nodes; `nvidia-imex-ctl -N` shows whether they are connected. A
container needs the channel as well: on Kubernetes through a ComputeDomain, otherwise through
`--device /dev/nvidia-caps-imex-channels/channel0`. `NCCL_MNNVL_ENABLE=0` makes the run start without NVLink
between nodes, at the speed of the network.

## References
- NCCL 2.23 to 2.32: src/mnnvl.cc (`ncclMnnvlCheck`), src/init.cc
- https://docs.nvidia.com/multi-node-nvlink-systems/imex-guide/imexchannels.html
- nvml.h, `nvmlGpuFabricInfoV_t`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    NcclFiles,
    NvidiaKernel,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import chosen, node_count
from dsdoctor_checks._where import on_host
from dsdoctor_checks.gpu._util import named
from dsdoctor_checks.nccl._settings import settings

CONDITION = Condition("imex-unavailable", id="DSD809", scope=Scope.NODE, since="0.1")

HINT = (
    "on every node, set `NVreg_CreateImexChannel0=1` for the `nvidia` kernel module and start"
    " `nvidia-imex`; `nvidia-imex-ctl -N` shows whether the nodes are connected"
)


@check(CONDITION)
def imex_serves_the_nodes(
    gpus: Gpus,
    kernel: NvidiaKernel,
    run: RunNeeds,
    env: Environment | Missing,
    hostfile: Hostfile | Missing,
    command: LaunchCommand | Missing,
    files: NcclFiles | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges as NCCL does: runs over several nodes, whose GPUs say that NVLink spans nodes."""
    spanning = [gpu for gpu in chosen(gpus, run, env) if gpu.fabric.spans_nodes]
    if not spanning:
        yield ok(spanning=0)
        return
    in_effect = {name: setting.value for name, setting in settings(env, files, command).items()}
    switch = in_effect.get("NCCL_MNNVL_ENABLE")
    off = (
        switch == "0"
        or in_effect.get("NCCL_P2P_DISABLE") == "1"
        or in_effect.get("NCCL_P2P_LEVEL", "").upper() in ("0", "LOC")
    )
    if off or (node_count(env, hostfile, command) == 1 and switch != "1"):
        yield skip("nothing says that this run uses NVLink between nodes")
        return
    if kernel.imex_channels is None:
        yield skip("the IMEX channels were not read")
        return
    if kernel.imex_channels:
        yield ok(channels=len(kernel.imex_channels))
        return
    gpu = spanning[0]
    yield fail(
        f"NVLink connects {named(gpu)} with other nodes, but"
        " `/dev/nvidia-caps-imex-channels` has no channel",
        effect="NCCL stops with `MNNVL is available but not working on this system` in a run over"
        " several nodes",
        hint="give the container a channel: on Kubernetes through a ComputeDomain, otherwise with"
        " `--device /dev/nvidia-caps-imex-channels/channel0`"
        if on_host(os)
        else HINT,
        gpu=gpu.index,
        name=gpu.name,
        cluster=gpu.fabric.cluster,
        clique=gpu.fabric.clique,
    )


SIGNATURES = (
    Signature(
        pattern=r"MNNVL \(cliqueSize \d{1,5}\) is available but not working on this system",
        source="nccl 2.23-2.32 src/mnnvl.cc",
        examples=(
            "node-7:71:204 [2] mnnvl.cc:60 NCCL WARN MNNVL (cliqueSize 16) is available but not working on this system. Check the IMEX channel configuration (/dev/nvidia-caps-imex-channels). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
            "MNNVL (cliqueSize 8) is available but not working on this system. Check the IMEX configuration (nvidia-imex-ctl -N). Set NCCL_MNNVL_ENABLE=0 to ignore this issue.",
        ),
        not_examples=('WARN("MNNVL (cliqueSize %d) is available but not working on this system."',),
        level=Level.CERTAIN,
        masks=(
            "nccl-ib-or-socket-interface",
            "nccl-unhandled-cuda-error",
            "nccl-timeout-watchdog",
            "rendezvous-timeout",
        ),
    ),
)
