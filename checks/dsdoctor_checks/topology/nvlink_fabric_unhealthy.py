"""The NVLink fabric is unhealthy, or splits the GPUs of a run.

## Why it matters
Since Hopper, the driver reports the health of the NVSwitch fabric, not only whether a GPU has joined it.
Unhealthy means wrong routes, lost bandwidth or disabled access. Limited capacity means that the fabric
works with fewer links than it should. GPUs of different cliques do not reach each other over NVLink.

## What to do
Check `nvidia-smi -q` (section Fabric) and the log of `nvidia-fabricmanager`, then reset all GPUs of the
board together, or reboot.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetGpuFabricInfoV, `healthSummary`, `healthMask`, `cliqueId`
- https://docs.nvidia.com/datacenter/tesla/fabric-manager-user-guide/ (a GPU that fails to register
  loses NVLink peer-to-peer and remains usable without it)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    FabricHealth,
    FabricState,
    Finding,
    Gpu,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, cuda_works, listed

CONDITION = Condition("nvlink-fabric-unhealthy", id="DSD707", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def fabric_is_healthy(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """Judges the registration, the driver's health summary for each GPU that joined, the cliques.

    Where CUDA fails or was not tried, `fabric-manager-not-running` judges the registration.
    """
    used = [
        gpu
        for gpu in chosen(gpus, run, env)
        if gpu.fabric.state == FabricState.COMPLETED and not gpu.mig_mode
    ]
    joined = [gpu for gpu in used if not gpu.fabric.status]
    out = [gpu for gpu in used if gpu.fabric.status] if cuda_works(live) else []
    if out:
        codes = sorted({gpu.fabric.status or 0 for gpu in out})
        yield fail(
            f"{_gpus(out)} did not join the NVLink fabric (NVML error "
            f"{listed(codes)}), but every GPU of the board should",
            effect="these GPUs work without NVLink; NCCL connects them over PCIe, many times slower",
            hint="restart `nvidia-fabricmanager` while the GPUs are idle and read its log; if that "
            "does not help, reboot",
            gpus=[gpu.index for gpu in out],
            codes=codes,
        )
    if not joined and out:
        return
    if not joined:
        yield skip("no GPU of this run has joined a fabric that reports its health")
        return
    for health, say, word in (
        (FabricHealth.UNHEALTHY, fail, "unhealthy"),
        (FabricHealth.LIMITED_CAPACITY, warn, "at limited capacity"),
    ):
        bad = [gpu for gpu in joined if gpu.fabric.health_summary == health]
        if bad:
            masks = sorted({f"{gpu.fabric.health_mask or 0:#x}" for gpu in bad})
            yield say(
                f"the driver reports the NVLink fabric of {_gpus(bad)} as {word} "
                f"(mask {listed(masks)}), but it should be healthy",
                effect="NCCL is slower on every GPU of the job, or hangs",
                hint="check `nvidia-smi -q` and the log of `nvidia-fabricmanager`, then reset all "
                "GPUs of the board together, or reboot",
                gpus=[gpu.index for gpu in bad],
                health=int(health),
                masks=masks,
            )
    cliques: dict[int, list[Gpu]] = {}
    for gpu in joined:
        if gpu.fabric.clique is not None:
            cliques.setdefault(gpu.fabric.clique, []).append(gpu)
    if len(cliques) > 1:
        parts = (f"{clique} ({_gpus(members)})" for clique, members in sorted(cliques.items()))
        yield warn(
            f"the GPUs of this run belong to fabric cliques {listed(parts)}, but only GPUs of the "
            "same clique reach each other over NVLink",
            effect="NCCL connects the cliques over PCIe or the network, which is many times slower",
            hint="start the job on GPUs of one clique",
            cliques={
                str(clique): [gpu.index for gpu in members] for clique, members in cliques.items()
            },
        )
    yield ok(gpus=[gpu.index for gpu in joined])


def _gpus(gpus: list[Gpu]) -> str:
    """GPUs by index; of some, a paste gives only the PCI address."""
    numbers: list[int | None] = [gpu.index for gpu in gpus]
    if None in numbers:
        return f"{'the GPU' if len(gpus) == 1 else 'the GPUs'} at {listed(gpu.pci_bdf for gpu in gpus)}"
    return f"{'GPU' if len(gpus) == 1 else 'GPUs'} {listed(numbers)}"
