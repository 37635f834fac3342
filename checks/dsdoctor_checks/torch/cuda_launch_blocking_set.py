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
    LaunchCommand,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    check,
    skip,
    warn,
)
from dsdoctor_checks._util import fixable, gpu_expected, job_environment, unset_by, variable

CONDITION = Condition(
    "cuda-launch-blocking-set",
    id="DSD308",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
)


@check(CONDITION)
def launches_do_not_block(
    env: Environment,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    run: RunNeeds,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Any value but 0 enables it."""
    value = variable(job_environment(env, command), "CUDA_LAUNCH_BLOCKING")
    if value in (None, "", "0"):
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip("no GPU is present or requested", value=value)
        return
    finding = warn(
        f"`CUDA_LAUNCH_BLOCKING={value}` makes every kernel launch synchronous,"
        " but training depends on asynchronous launches",
        effect="training is slower, especially with many small kernels",
        hint=unset_by(command, "CUDA_LAUNCH_BLOCKING"),
        value=value,
    )
    yield fixable(finding, command, "CUDA_LAUNCH_BLOCKING")
