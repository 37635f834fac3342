"""nvcc is installed but does not report its version.

## Why it matters
DeepSpeed and torch run `nvcc -V` before every build. If it hangs, fails or prints something else, no
CUDA op can be built.

## What to do
Run `nvcc -V` by hand. Common causes: a wrapper script that waits for input, an unresponsive file system,
a binary for another architecture, a half-removed toolkit.

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
def nvcc_reports_version(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Judges only the nvcc that would be used; a broken one elsewhere does no harm."""
    toolkit = toolkits.toolkit
    if toolkit is None or toolkit.nvcc is None or toolkit.usable:
        return
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    evidence = {"nvcc": toolkit.nvcc, "error": toolkit.error, "how": toolkits.how}
    problem = toolkit.error or "it did not report a version"
    if need.use is _ops.Use.NONE:
        yield skip(
            f"`{toolkit.nvcc} -V` reports no version ({problem}), but {need.reason}", **evidence
        )
        return
    say = fail if need.certain else warn
    yield say(
        f"`{toolkit.nvcc} -V` reports no version: {problem}",
        effect=f"{need.words} cannot be built",
        hint=f"run `{toolkit.nvcc} -V` by hand, then reinstall the toolkit or point `CUDA_HOME`"
        " to another one",
        need=need.use.value,
        ops=list(need.ops),
        **evidence,
    )
