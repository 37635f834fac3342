"""nvcc is there but does not tell its version.

## Why it matters
DeepSpeed and torch ask `nvcc -V` before every build. If it hangs, ends with an error or prints
something else, no CUDA op can be built.

## What to do
Run `nvcc -V` by hand. Common causes: a wrapper script that waits for something, a file system that
does not answer, a binary for another machine, a half-removed toolkit.

## References
- DeepSpeed op_builder/builder.py: `installed_cuda_version`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    TorchBuild,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "nvcc-unusable",
    id="DSD204",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit",),
)


@check(CONDITION)
def nvcc_tells_version(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Only the nvcc that would be used; a broken one elsewhere harms nobody."""
    toolkit = toolkits.toolkit
    if toolkit is None or toolkit.nvcc is None or toolkit.usable:
        return
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    evidence = {"nvcc": toolkit.nvcc, "error": toolkit.error, "how": toolkits.how}
    problem = toolkit.error or "it did not tell its version"
    if need.use is _ops.Use.NONE:
        yield skip(
            f"`{toolkit.nvcc} -V` gives no version ({problem}), but {need.reason}", **evidence
        )
        return
    say = fail if need.certain else warn
    yield say(
        f"`{toolkit.nvcc} -V` gives no version: {problem}",
        effect=f"{need.words} cannot be built",
        hint=f"run `{toolkit.nvcc} -V` by hand, then reinstall that toolkit or point `CUDA_HOME`"
        " to another",
        need=need.use.value,
        ops=list(need.ops),
        **evidence,
    )
