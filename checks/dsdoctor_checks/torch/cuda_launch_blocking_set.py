"""CUDA_LAUNCH_BLOCKING is left on.

## Why it matters
Every kernel launch then waits for the kernel to end. That helps to find the line of an error, and
takes away the overlap of computation and communication that training lives by.

## What to do
Unset `CUDA_LAUNCH_BLOCKING` for anything but a hunt for an error.

## References
- CUDA programming guide, environment variables
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    check,
    skip,
    warn,
)
from dsdoctor_checks._util import gpu_expected

CONDITION = Condition(
    "cuda-launch-blocking-set",
    id="DSD308",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)


@check(CONDITION)
def launches_do_not_block(
    env: Environment, kernel: NvidiaKernel | Missing, gpus: Gpus | Missing, run: RunNeeds
) -> Iterator[Finding]:
    """Any value but 0 turns it on."""
    value = env.get("CUDA_LAUNCH_BLOCKING")
    if value in (None, "", "0"):
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip("no GPU is here or asked for", value=value)
        return
    yield warn(
        f"`CUDA_LAUNCH_BLOCKING={value}` makes every kernel launch wait,"
        " but training needs overlap",
        effect="training is slower, most of all with many small kernels",
        hint="unset `CUDA_LAUNCH_BLOCKING`",
        value=value,
    )
