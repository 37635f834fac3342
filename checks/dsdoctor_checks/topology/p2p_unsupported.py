"""GPUs that NVLinks join may not reach each other's memory.

## Why it matters
GPUs without NVLink often cannot reach each other directly, and NCCL then copies through the host:
slower, and healthy. Where NVLinks are up it is a fault, or a setting of the driver: NCCL stops with
`P2P is disabled between NVLINK connected GPUs`.

## What to do
Remove the driver's setting (`NVreg_RegistryDwords` in /etc/modprobe.d), or for a trial set
`NCCL_IGNORE_DISABLED_P2P=1`.

## References
- NCCL src/graph/paths.cc
- nvml.h of CUDA 13.5: nvmlDeviceGetP2PStatus
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    GpuTopology,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, variable

CONDITION = Condition("p2p-unsupported", id="DSD702", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def linked_gpus_reach_each_other(
    topology: GpuTopology, gpus: Gpus, run: RunNeeds, env: Environment | Missing
) -> Iterator[Finding]:
    """Judges pairs with NVLinks; all others are noted as they are."""
    indices = {gpu.index for gpu in chosen(gpus, run, env) if not gpu.mig_mode}
    pairs = [pair for pair in topology.pairs if {pair.a, pair.b} <= indices]
    if not pairs:
        yield skip("the run has no pair of GPUs")
        return
    ignored = variable(env, "NCCL_IGNORE_DISABLED_P2P") == "1"
    noted: dict[str, str] = {}
    for pair in pairs:
        states = {state for state in (pair.p2p_read, pair.p2p_write) if state}
        refused = sorted(state for state in states if not state.startswith(("OK", "UNKNOWN")))
        if not pair.nvlinks or not refused:
            noted[f"{pair.a}-{pair.b}"] = " ".join(sorted(states)) or "unknown"
            continue
        yield (warn if ignored else fail)(
            f"GPUs {pair.a} and {pair.b} are joined by {pair.nvlinks} NVLinks, but the driver "
            f"says {refused[0]} of access to each other's memory",
            effect="NCCL stops with `P2P is disabled between NVLINK connected GPUs`",
            hint="remove settings of P2P from /etc/modprobe.d and reboot",
            a=pair.a,
            b=pair.b,
            nvlinks=pair.nvlinks,
            p2p_read=pair.p2p_read,
            p2p_write=pair.p2p_write,
        )
    yield ok(p2p=noted)
