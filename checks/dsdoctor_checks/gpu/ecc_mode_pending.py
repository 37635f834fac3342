"""A GPU's ECC mode will change at the next reboot.

## Why it matters
Someone enabled or disabled error correction. After the next reboot, the GPU has a different amount of
memory and a different speed, so a job that fits today may not fit then.

## What to do
Reboot the node now, or restore the current mode with `nvidia-smi -e`.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetEccMode
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

CONDITION = Condition("ecc-mode-pending", id="DSD618", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def ecc_mode_is_settled(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the current mode with the pending one."""
    found = judged(gpus, run, env)
    for gpu in found:
        if (
            None not in (gpu.ecc_mode, gpu.ecc_mode_pending)
            and gpu.ecc_mode != gpu.ecc_mode_pending
        ):
            yield warn(
                f"ECC of {named(gpu)} is {word(gpu.ecc_mode)}, "
                f"but will be {word(gpu.ecc_mode_pending)} after the next reboot",
                effect="memory size and error correction change at the next reboot",
                hint=f"reboot to turn it {word(gpu.ecc_mode_pending)}, or keep it {word(gpu.ecc_mode)}: "
                f"`nvidia-smi -i {selector(gpu)} -e {int(bool(gpu.ecc_mode))}` as root",
                gpu=gpu.index,
                uuid=gpu.uuid,
                ecc=gpu.ecc_mode,
                pending=gpu.ecc_mode_pending,
            )
    yield from skip_unreported(found, lambda gpu: gpu.ecc_mode, "ecc_mode", "the ECC mode")
