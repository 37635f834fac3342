"""There is no CUDA toolkit (nvcc) to build DeepSpeed's ops with.

## Why it matters
The torch wheel brings the CUDA run-time libraries but no compiler. DeepSpeed builds ops such as
`fused_adam` at first use, and then dies with "CUDA_HOME does not exist, unable to compile CUDA
op(s)".

## What to do
Install the toolkit of the CUDA that torch was built for: `cuda-toolkit-12-8` from NVIDIA's apt or
dnf repository (not `cuda`, which brings a driver), or `cuda-toolkit` from conda-forge. Or use an
optimizer that needs no op (`"torch_adam": true`).

## References
- DeepSpeed op_builder/builder.py: `installed_cuda_version`
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
    Signature,
    TorchBuild,
    check,
    fail,
    warn,
)
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "cuda-toolkit-missing",
    id="DSD202",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit",),
    leads_to=("cpu-adam-unbuilt",),
    narrower=("nvcc-unusable", "cuda-home-invalid"),
)


@check(CONDITION)
def toolkit_is_there(
    torch: TorchBuild,
    toolkits: CudaToolkits,
    deepspeed: DeepSpeedInstall | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
) -> Iterator[Finding]:
    """A failure where an op must be built, a warning where one may have to be."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    settled = need.settled()
    if settled is not None:
        yield settled
        return
    toolkit = toolkits.toolkit
    if toolkit is not None and toolkit.usable:
        return
    other = next((found for found in toolkits.found if found.usable), None)
    where = (
        f"the toolkit at `{toolkit.root}` has no usable nvcc"
        if toolkit
        else "no CUDA toolkit is found by `CUDA_HOME`, PATH or `/usr/local/cuda`"
    )
    say = fail if need.certain else warn
    name = (torch.cuda or "").replace(".", "-")
    yield say(
        f"{where}, but torch {torch.version} needs nvcc of CUDA {torch.cuda} to build ops",
        effect=f"{need.words} cannot be built (`MissingCUDAException`)",
        hint=f"set `CUDA_HOME={other.root}` (CUDA {other.version})"
        if other
        else f"install the CUDA {torch.cuda} toolkit (`cuda-toolkit-{name}` of NVIDIA's"
        f" repository, or `conda install -c conda-forge cuda-toolkit={torch.cuda}`)",
        torch=torch.version,
        torch_cuda=torch.cuda,
        need=need.use.value,
        ops=list(need.ops),
        root=toolkit.root if toolkit else None,
        error=toolkit.error if toolkit else None,
        others=[found.root for found in toolkits.found if found.usable],
        other_cuda=other.version if other else None,
    )


HINT = "install the CUDA toolkit of torch's version and set `CUDA_HOME` to it"

SIGNATURES = (
    Signature(
        anchor="CUDA_HOME",
        pattern=(
            r"^(?!.*\[WARNING\]).*CUDA_HOME(?: environment variable)? (?:is not set"
            r"|does not exist|is undefined|not set|is None)"
        ),
        examples=(
            "OSError: CUDA_HOME environment variable is not set.",
            "MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)",
        ),
        not_examples=("CUDA_HOME=/usr/local/cuda",),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor="nvcc",
        pattern=(
            r"(?:No such file or directory|\[Errno 2\]|Errno 13).{0,40}nvcc\b"
            r"|nvcc['\x22]?:? (?:command )?not found|nvcc['\x22]?: No such file"
            r"|/nvcc: (?:not found|No such)|Could not find nvcc|nvcc was not found"
            r"|Unable to (?:find|locate) nvcc|which: no nvcc"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
            "/bin/sh: 1: nvcc: not found",
            "bash: nvcc: command not found",
            "unable to execute '/usr/local/cuda/bin/nvcc': No such file or directory",
        ),
        not_examples=("/usr/local/cuda/bin/nvcc -O3 -c x.cu",),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=(
            "bare_metal_version",
            "find CUDA",
            "find the CUDA",
            "find a CUDA",
            "find a valid CUDA",
            "find valid CUDA",
            "locate CUDA",
            "locate the CUDA",
            "locate a CUDA",
            "locate a valid CUDA",
            "locate valid CUDA",
            "CUDA_TOOLKIT_ROOT_DIR not found",
            "could not locate the valid CUDA",
            "unable to locate the valid CUDA",
            "could not find the valid CUDA",
            "unable to find the valid CUDA",
            "cannot locate the valid CUDA",
            "cannot find the valid CUDA",
        ),
        pattern=(
            r"(?i)(?:cannot|could not|unable to) (?:find|locate)(?: a"
            r"| the)? (?:valid )?CUDA(?:_HOME| toolkit| installation)?\b"
            r"|name 'bare_metal_version' is not defined|CUDA_TOOLKIT_ROOT_DIR not found"
        ),
        examples=(
            "NameError: name 'bare_metal_version' is not defined",
            "Cannot find CUDA installation.",
        ),
        not_examples=(
            "CUDA toolkit found",
            "bare_metal_version = 12.4",
        ),
        weight=60,
    ),
    Signature(
        anchor="NoneType",
        pattern=r"unsupported operand type\(s\) for \+: 'NoneType' and 'str'",
        examples=(
            "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
            "    TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
        ),
        not_examples=(
            "'NoneType' object has no attribute 'x'",
            "TypeError: unsupported operand type(s) for +: 'NoneType' and 'int'",
        ),
        weight=58,
        near=("nvcc", "cuda_home", "CUDA_HOME", "installed_cuda_version"),
    ),
    Signature(
        anchor=(
            "Could NOT find CUDA",
            "CUDA_TOOLKIT_ROOT_DIR not found",
            "unable to compile CUDA op",
            "Failed to find nvcc",
            "CUDAToolkit_ROOT",
            "nvcc, unable to compile",
        ),
        pattern=(
            r"Could NOT find CUDA(?:Toolkit)? \(missing|CUDA_TOOLKIT_ROOT_DIR not found"
            r"|Unable to run \S*nvcc, unable to compile|Failed to find nvcc"
            r"|set the CUDAToolkit_ROOT"
        ),
        examples=(
            "-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)",
            "op_builder.builder.MissingCUDAException: Unable to run /usr/local/cuda/bin/nvcc, unable to compile CUDA op(s): x",
        ),
        not_examples=(
            "-- Found CUDA: /usr/local/cuda",
            "Could NOT find CUDA samples, which are optional",
        ),
        weight=62,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=(
            "nvcc' failed: No such",
            "CMAKE_CUDA_COMPILER",
            "in environment variable CUDACXX",
            "annot find ptxas",
            "ailed with error code 127",
            "cicc: not found",
            "cicc: No such",
        ),
        pattern=(
            r"command '\S*nvcc' failed: No such|No CMAKE_CUDA_COMPILER could be found"
            r"|CMAKE_CUDA_COMPILER:? .{0,80}(?:not found|is not able to compile|is not a full path)"
            r"|CMAKE_CUDA_COMPILER not set, after|The CMAKE_CUDA_COMPILER:\s*$"
            r"|Could not find compiler set in environment variable CUDACXX"
            r"|[Cc]annot find ptxas|ptxas.? failed with error code 127|cicc: (?:not found|No such)"
        ),
        examples=(
            "error: command '/usr/local/cuda/bin/nvcc' failed: No such file or directory",
            "  No CMAKE_CUDA_COMPILER could be found.",
            "CMake Error: CMAKE_CUDA_COMPILER not set, after EnableLanguage",
            "  The CMAKE_CUDA_COMPILER:",
            "  Could not find compiler set in environment variable CUDACXX:",
            "RuntimeError: Cannot find ptxas",
            "RuntimeError: `ptxas` failed with error code 127:",
            "sh: 1: cicc: not found",
        ),
        not_examples=(
            "-- CMAKE_CUDA_COMPILER: /usr/local/cuda/bin/nvcc",
            "-- nvcc is named in environment variable CUDACXX: /usr/local/cuda/bin/nvcc",
            "error: command '/usr/local/cuda/bin/nvcc' failed with exit code 1",
        ),
        weight=64,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=("nvcc'", "/cuda"),
        pattern=(
            r"Errno (?:13|20)\].{0,120}nvcc'|No such file or directory: '\S*/cuda\S*/bin/(?:ptxas|cuobjdump|nvdisasm|fatbinary|nvlink)'"
        ),
        examples=(
            "NotADirectoryError: [Errno 20] Not a directory: '/usr/local/cuda/bin/nvcc/bin/nvcc'",
            "PermissionError: [Errno 13] Permission denied: '/usr/local/cuda/bin/nvcc'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/cuobjdump'",
        ),
        not_examples=(
            "PermissionError: [Errno 13] Permission denied: '/usr/local/cuda/version.txt'",
            "command: '/usr/local/cuda/bin/nvcc' -V",
        ),
        weight=66,
        masks=("permissions", "cpu-adam-unbuilt"),
    ),
)
