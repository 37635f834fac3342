"""The CUDA toolkit has nvcc, but headers or libraries that ops need are missing.

## Why it matters
Partial toolkits (distribution packages, conda's `cuda-nvcc`, PyPI wheels) contain only the compiler. The
build of an op then fails at an `#include` in torch's headers, or the linker does not find `-lcudart`.

## What to do
Install the whole toolkit, not just the compiler: `cuda-toolkit-X-Y` from NVIDIA's repository, or
`cuda-toolkit` from conda-forge.

## References
- ATen/cuda/CUDAContextLight.h of torch, which includes cuBLAS, cuSPARSE and cuSOLVER
- DeepSpeed op_builder/cpu_adam.py of 0.19.7 and older (`-lcurand`)
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
from dsdoctor_checks._util import listed
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "cuda-toolkit-incomplete",
    id="DSD203",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit",),
    leads_to=("build-dependency-missing",),
)


@check(CONDITION)
def toolkit_is_complete(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """Judges the headers and the cudart library of the toolkit that would be used."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    if need.use is _ops.Use.NONE:
        yield skip(need.reason)
        return
    toolkit = toolkits.toolkit
    if toolkit is None or not toolkit.usable or toolkit.trial_ok:
        return
    lacking = [f"`{header}`" for header in toolkit.missing_headers]
    if not toolkit.has_cudart:
        lacking.append("`libcudart.so`")
    if not lacking:
        return
    say = fail if need.certain else warn
    yield say(
        f"the CUDA {toolkit.version} toolkit at `{toolkit.root}` has nvcc"
        f" but not {listed(lacking)}",
        effect=f"the build of {need.words} fails at the missing file",
        hint=f"install the whole CUDA {toolkit.version} toolkit, not just its compiler",
        root=toolkit.root,
        nvcc_cuda=toolkit.version,
        missing_headers=list(toolkit.missing_headers),
        has_cudart=toolkit.has_cudart,
        need=need.use.value,
        ops=list(need.ops),
    )
