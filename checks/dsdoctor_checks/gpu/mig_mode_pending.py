"""A GPU's MIG mode will change at the next reset.

## Why it matters
Someone enabled or disabled MIG, but the GPU was not reset. After the next reset, a job sees different
devices.

## What to do
Reset the GPU now, or restore the current mode with `nvidia-smi -mig`.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetMigMode
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    warn,
)

from ._util import judged, named, selector, skip_unreported, word

CONDITION = Condition("mig-mode-pending", id="DSD612", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def mig_mode_is_settled(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the current mode with the pending one."""
    found = judged(gpus, run, env)
    for gpu in found:
        if (
            None not in (gpu.mig_mode, gpu.mig_mode_pending)
            and gpu.mig_mode != gpu.mig_mode_pending
        ):
            yield warn(
                f"MIG of {named(gpu)} is {word(gpu.mig_mode)}, "
                f"but will be {word(gpu.mig_mode_pending)} after the next reset",
                effect="the devices that a job sees change at the next reset",
                hint=f"turn it {word(gpu.mig_mode_pending)} with `nvidia-smi --gpu-reset -i {selector(gpu)}`, or "
                f"keep it {word(gpu.mig_mode)} with "
                f"`nvidia-smi -i {selector(gpu)} -mig {int(bool(gpu.mig_mode))}` as root",
                gpu=gpu.index,
                uuid=gpu.uuid,
                mig=gpu.mig_mode,
                pending=gpu.mig_mode_pending,
            )
    yield from skip_unreported(found, lambda gpu: gpu.mig_mode, "mig_mode", "the MIG mode")
