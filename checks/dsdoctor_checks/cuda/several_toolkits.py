"""Several CUDA toolkits are installed, and the one in use does not match torch.

## Why it matters
torch and DeepSpeed use the toolkit in `CUDA_HOME`, then the `nvcc` on PATH, then `/usr/local/cuda`. They
do not check whether another one matches better.

## What to do
Point `CUDA_HOME` to the toolkit for torch's CUDA version.

## References
- torch/utils/cpp_extension.py: `_find_cuda_home`
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
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import pair
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "several-toolkits",
    id="DSD205",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("unset-variables",),
    leads_to=("cuda-toolkit-mismatch",),
)


@check(CONDITION)
def best_toolkit_is_chosen(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """A warning only if another toolkit matches torch and the chosen one does not."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    if need.use is _ops.Use.NONE:
        yield skip(need.reason)
        return
    chosen = toolkits.toolkit
    want = pair(torch.cuda)
    roots = [f"{found.root} ({found.version})" for found in toolkits.found if found.usable]
    # one without a working nvcc is the fault of `CUDA_HOME`, or of its nvcc, and reported there
    if chosen is None or not chosen.usable or pair(chosen.version) == want:
        yield ok(toolkits=roots, torch_cuda=torch.cuda)
        return
    fitting = next(
        (found for found in toolkits.found if found.usable and pair(found.version) == want), None
    )
    if fitting is None:
        yield ok(toolkits=roots, torch_cuda=torch.cuda)
        return
    yield warn(
        f"`{chosen.root}` (CUDA {chosen.version or 'unknown'}, from {toolkits.how or chosen.source})"
        f" would be used, but `{fitting.root}` has the CUDA {fitting.version} that torch was"
        " built for",
        effect=f"{need.words} would be built with a toolkit that does not match torch",
        hint=f"set `CUDA_HOME={fitting.root}`",
        chosen=chosen.root,
        chosen_cuda=chosen.version,
        how=toolkits.how,
        fitting=fitting.root,
        fitting_cuda=fitting.version,
        torch_cuda=torch.cuda,
        toolkits=roots,
    )
