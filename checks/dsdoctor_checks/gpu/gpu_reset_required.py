"""The driver requests a GPU reset or a reboot.

## Why it matters
After some faults, the driver blocks new work on a GPU, or runs it with a faulty part disabled, until
the requested action is taken.

## What to do
Drain the node and take the action: `nvidia-smi --gpu-reset -i N` while the GPU is idle, or a reboot.

## References
- nvml.h of CUDA 13.5: NVML_FI_DEV_GET_GPU_RECOVERY_ACTION (230)
- https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/error-recovery-and-response-flags.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    RecoveryAction,
    RunNeeds,
    Scope,
    check,
    fail,
    warn,
)

from ._util import RESET_REQUIRED, judged, named, selector, skip_unreported

CONDITION = Condition("gpu-reset-required", id="DSD602", scope=Scope.NODE, since="0.1")

#: Actions that affect neither running nor new single-GPU work.
MILD = (RecoveryAction.DRAIN_P2P, RecoveryAction.RECOVER_IMEX_DOMAIN)
BOOT = (RecoveryAction.NODE_REBOOT, RecoveryAction.SYSTEM_REBOOT)


@check(CONDITION)
def no_recovery_is_due(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges the recovery action, or error 16 from drivers that do not report one."""
    found = judged(gpus, run, env)
    for gpu in found:
        code = gpu.health.recovery_action
        known = code is not None and code in RecoveryAction.__members__.values()
        action = RecoveryAction(code) if code is not None and known else RecoveryAction.NONE
        required = gpu.error is not None and gpu.error.code == RESET_REQUIRED
        if action is RecoveryAction.NONE and not required:
            continue
        word = action.name if action is not RecoveryAction.NONE else "GPU_RESET"
        yield (warn if action in MILD else fail)(
            f"the driver requests {word} for {named(gpu)}, but a healthy GPU needs no recovery action",
            effect="new work fails, or runs on a faulty GPU",
            hint="reboot the node"
            if action in BOOT
            else f"stop all work on it and run `nvidia-smi --gpu-reset -i {selector(gpu)}` as root",
            gpu=gpu.index,
            uuid=gpu.uuid,
            recovery_action=code,
            action=word,
            reset_required=required,
        )
    yield from skip_unreported(
        tuple(gpu for gpu in found if gpu.error is None),
        lambda gpu: gpu.health.recovery_action,
        "health.recovery_action",
        "a recovery action",
    )
