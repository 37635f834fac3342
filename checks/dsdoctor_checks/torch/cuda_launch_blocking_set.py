"""CUDA_LAUNCH_BLOCKING is set.

## Why it matters
Every kernel launch then waits for the kernel to finish. That helps to locate an error, but removes the
overlap of computation and communication that training depends on.

## What to do
Unset `CUDA_LAUNCH_BLOCKING` unless you are debugging.

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
    """Any value but 0 enables it."""
    value = env.get("CUDA_LAUNCH_BLOCKING")
    if value in (None, "", "0"):
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip("no GPU is present or requested", value=value)
        return
    yield warn(
        f"`CUDA_LAUNCH_BLOCKING={value}` makes every kernel launch synchronous,"
        " but training depends on asynchronous launches",
        effect="training is slower, especially with many small kernels",
        hint="unset `CUDA_LAUNCH_BLOCKING`",
        value=value,
    )
