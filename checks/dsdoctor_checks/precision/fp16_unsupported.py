"""The config enables fp16, but a device of this run does not support it.

## Why it matters
DeepSpeed 0.13 and later accept fp16 on GPUs of compute capability 7.0 (Volta) or newer. Elsewhere they
fail with "Type fp16 is not supported on your device". `DS_ALLOW_DEPRECATED_FP16=1` permits capability
6. On the CPU it depends on the torch build.

## What to do
On older GPUs, train in fp32. On a CPU, enable `bf16` instead. If the run was meant for a GPU, find out
why DeepSpeed chose the CPU: `dsdoctor check`.

## References
- DeepSpeed accelerator/cuda_accelerator.py, cpu_accelerator.py: `is_fp16_supported`
- DeepSpeed runtime/engine.py: refuses in 0.13.1, not in 0.12.6
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import at_least, capabilities, dotted, variable
from dsdoctor_checks.precision._config import asks

CONDITION = Condition("fp16-unsupported", id="DSD502", scope=Scope.JOB, since="0.1")
_FLOOR = (7, 0)
_PASCAL = (6, 0)
#: First DeepSpeed whose engine asks whether the device supports fp16.
_ASKS = "0.13.0"


@check(CONDITION)
def deepspeed_accepts_fp16(
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    deepspeed: DeepSpeedInstall | Missing,
) -> Iterator[Finding]:
    """Applies DeepSpeed's own rule."""
    devices = capabilities(gpus, live, run, env)
    if not devices:
        yield skip("no GPU whose compute capability is known")
        return
    evidence: dict[str, Any] = {"capabilities": {name: dotted(cc) for name, cc in devices.items()}}
    allowed = variable(env, "DS_ALLOW_DEPRECATED_FP16") == "1"
    floor = _PASCAL if allowed else _FLOOR
    lacking = {name: dotted(cc) for name, cc in devices.items() if cc < floor}
    if not lacking:
        yield ok(**evidence)
        return
    if asks(run.config, "fp16") is None:
        yield skip("no config enables fp16", **evidence)
        return
    if isinstance(deepspeed, DeepSpeedInstall) and not at_least(deepspeed.version, _ASKS):
        yield ok(deepspeed=deepspeed.version, **evidence)
        return
    name, capability = next(iter(lacking.items()))
    yield fail(
        f"`fp16` is enabled, but {name} has capability {capability} and DeepSpeed needs"
        f" {dotted(floor)}",
        effect="DeepSpeed fails with `Type fp16 is not supported on your device`",
        hint="train in fp32 on this GPU, or set `DS_ALLOW_DEPRECATED_FP16=1` and accept slow math"
        if capability.startswith("6.")
        else "train in fp32 on this GPU, or use a newer one",
        lacking=lacking,
        needs=dotted(floor),
        **evidence,
    )


HINT = "disable `fp16` in the config: use `bf16` on a CPU, fp32 on a GPU older than Volta"

SIGNATURES = (
    Signature(
        pattern="ValueError: [Tt]ype fp16 is not supported on your device",
        examples=("ValueError: type fp16 is not supported on your device.",),
        source="deepspeed 0.15-0.19 runtime/engine.py",
        level=Level.STRONG,
        unless=("Setting accelerator to CPU", "Setting ds_accelerator to cpu"),
    ),
    Signature(
        # in 0.13.1 to 0.15 of `init_inference` too, whose default type is fp16
        pattern=r"ValueError: [Tt]ype fp16 is not supported\.",
        examples=("ValueError: Type fp16 is not supported.",),
        source="deepspeed 0.13.1-0.15.0 runtime/engine.py, inference/engine.py",
        level=Level.STRONG,
        unless=("Setting accelerator to CPU", "Setting ds_accelerator to cpu"),
        message="fp16 is set, or is the default of `init_inference`, but this device does not support it",
        hint=(
            "use bf16 on a CPU and fp32 on a GPU older than Volta: in the config, or with `dtype`"
            " of `init_inference`"
        ),
    ),
)
