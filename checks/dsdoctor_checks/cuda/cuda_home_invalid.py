"""CUDA_HOME (or CUDA_PATH) points to a folder that is not a CUDA toolkit.

## Why it matters
torch and DeepSpeed use the variable without checking it. Even with a working toolkit on PATH, the build
calls `$CUDA_HOME/bin/nvcc` and fails.

## What to do
Unset the variable, or set it to the folder that contains `bin/nvcc`.

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
    Level,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "cuda-home-invalid",
    id="DSD208",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("unset-variables", "install-cuda-toolkit"),
    leads_to=("cuda-toolkit-missing",),
)

HINT = "set `CUDA_HOME` to one folder, the one that contains `bin/nvcc`; it is not a list like PATH"

SIGNATURES = (
    Signature(
        # a build appends /bin/nvcc to the variable, which somebody wrote as a list of folders
        pattern=(
            r"(?:^|[\s'\x22])(?:/[^\s:'\x22]{1,200})?:[^\s'\x22]{0,400}/bin/nvcc"
            r".{0,20}(?:[Nn]o such file|not found)"
            r"|[Nn]o such file or directory: ['\x22](?:/[^\s:'\x22]{1,200})?:[^\s'\x22]{0,400}/bin/nvcc"
            # what ninja is about to run
            r"|\[\d{1,3}/\d{1,3}\] (?:/[^\s:'\x22]{1,200})?:[^\s'\x22]{0,400}/bin/nvcc "
        ),
        source="torch 1.0-2.13 utils/cpp_extension.py `_join_cuda_home`; messages of sh, Python and ninja 1.5-1.13",
        examples=(
            "unable to execute '/usr/local/cuda:/usr/local/cuda/bin/nvcc': No such file or directory",
            "/bin/sh: 1: /usr/local/cuda-11.8::/bin/nvcc: not found",
            "FileNotFoundError: [Errno 2] No such file or directory: ':/usr/local/cuda/bin/nvcc'",
            "RuntimeError: Error building extension 'foo': [1/2] :/usr/local/cuda-10.2/bin/nvcc -DTORCH_EXTENSION_NAME=foo",
        ),
        not_examples=(
            "unable to execute '/usr/local/cuda/bin/nvcc': No such file or directory",
            "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
            "[1/2] /usr/local/cuda/bin/nvcc -DTORCH_EXTENSION_NAME=foo",
        ),
        level=Level.CERTAIN,
        masks=("cuda-toolkit-missing",),
    ),
)


@check(CONDITION)
def cuda_home_is_toolkit(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """The folder must exist and contain nvcc."""
    toolkit = toolkits.toolkit
    named = toolkits.how in ("CUDA_HOME", "CUDA_PATH") and toolkit is not None
    if toolkits.cuda_home_missing is not None:
        place, lacks = toolkits.cuda_home_missing, "which does not exist"
    elif named and toolkit is not None and toolkit.nvcc is None:
        place, lacks = toolkit.root, "which has no `bin/nvcc`"
    else:
        return
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    if need.use is _ops.Use.NONE:
        yield skip(f"`CUDA_HOME` is `{place}`, {lacks}, but {need.reason}", cuda_home=place)
        return
    other = next((found for found in toolkits.found if found.usable), None)
    variable = toolkits.how if toolkits.how in ("CUDA_HOME", "CUDA_PATH") else "CUDA_HOME"
    say = fail if need.certain else warn
    yield say(
        f"`{variable}` is `{place}`, {lacks}, but torch uses it unchecked",
        effect=f"{need.words} cannot be built, even with a working toolkit on PATH",
        hint=f"set `{variable}={other.root}` (CUDA {other.version})"
        if other
        else f"unset `{variable}`, or set it to the folder that contains `bin/nvcc`",
        cuda_home=place,
        other=other.root if other else None,
        other_cuda=other.version if other else None,
        need=need.use.value,
    )
