"""GPUs connected by NVLink cannot access each other's memory.

## Why it matters
GPUs without NVLink often have no peer access. NCCL then copies through the host, which is slower but
not a fault. With NVLinks up, missing peer access is a fault or a driver setting, and NCCL stops with
`P2P is disabled between NVLINK connected GPUs`.

## What to do
Remove the driver setting (`NVreg_RegistryDwords` in /etc/modprobe.d) and reboot. To test without it,
set `NCCL_IGNORE_DISABLED_P2P=1`.

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
    """Judges pairs with NVLinks; all others are only noted."""
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
            f"GPUs {pair.a} and {pair.b} are connected by {pair.nvlinks} NVLinks, but the driver "
            f"reports {refused[0]} for peer access",
            effect="NCCL stops with `P2P is disabled between NVLINK connected GPUs`",
            hint="remove P2P settings from /etc/modprobe.d and reboot",
            a=pair.a,
            b=pair.b,
            nvlinks=pair.nvlinks,
            p2p_read=pair.p2p_read,
            p2p_write=pair.p2p_write,
        )
    yield ok(p2p=noted)
