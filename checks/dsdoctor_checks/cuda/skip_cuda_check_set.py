"""DS_SKIP_CUDA_CHECK hides a toolkit that DeepSpeed would refuse.

## Why it matters
With `DS_SKIP_CUDA_CHECK=1`, DeepSpeed only warns where it would otherwise refuse to pre-build. The ops may not
compile, or fail when they are loaded, far from the cause. Any value other than `1` has no effect.

## What to do
Install the toolkit that matches torch, and unset the variable.

## References
- DeepSpeed op_builder/builder.py: `assert_no_cuda_mismatch`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedInstall,
    Environment,
    Finding,
    Missing,
    Scope,
    TorchBuild,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks.cuda import _tables

CONDITION = Condition(
    "skip-cuda-check-set",
    id="DSD206",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("unset-variables", "install-cuda-toolkit"),
    leads_to=("cuda-toolkit-mismatch",),
)


@check(CONDITION)
def cuda_check_is_on(
    env: Environment,
    torch: TorchBuild | Missing,
    toolkits: CudaToolkits | Missing,
    deepspeed: DeepSpeedInstall | Missing,
) -> Iterator[Finding]:
    """A warning if the variable hides a refusal; otherwise it has no effect."""
    value = env.get("DS_SKIP_CUDA_CHECK")
    if value in (None, "", "0"):
        return
    cuda = torch.cuda if isinstance(torch, TorchBuild) else None
    toolkit = toolkits.toolkit if isinstance(toolkits, CudaToolkits) else None
    if cuda is None or toolkit is None or toolkit.version is None:
        yield skip("torch's CUDA version or nvcc's is missing, so there is nothing to refuse")
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    evidence = {"value": value, "nvcc_cuda": toolkit.version, "torch_cuda": cuda}
    if _tables.accepts(toolkit.version, cuda, version):
        yield ok("DeepSpeed accepts these versions without it", **evidence)
        return
    silenced = value == "1"
    yield warn(
        f"`DS_SKIP_CUDA_CHECK={value}` {'silences' if silenced else 'does not silence'} DeepSpeed's"
        f" check, which refuses nvcc {toolkit.version} for torch's CUDA {cuda}"
        + ("" if silenced else ": only `1` has an effect"),
        effect="pre-built ops may not compile, or fail when they are loaded"
        if silenced
        else "pre-building still fails with `CUDAMismatchException`",
        hint=f"install the CUDA {cuda} toolkit and unset `DS_SKIP_CUDA_CHECK`",
        heeded="1",
        **evidence,
    )
