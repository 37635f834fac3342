"""There is no CUDA toolkit (nvcc) to build ops and extensions with.

## Why it matters
The torch wheel includes the CUDA runtime libraries but no compiler. DeepSpeed builds ops such as
`fused_adam` at first use and then fails with "CUDA_HOME does not exist, unable to compile CUDA op(s)".
`DS_BUILD_OPS=0` does not prevent that: it controls pre-building only.

## What to do
Install the toolkit for torch's CUDA version: `cuda-toolkit-12-8` from NVIDIA's apt or dnf repository
(not `cuda`, which includes a driver), or `cuda-toolkit` from conda-forge. Or use an optimizer that needs
no op (`"torch_adam": true`).

## References
- DeepSpeed op_builder/builder.py: `installed_cuda_version`; setup.py: `DS_BUILD_OPS`
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
    TracebackRule,
    check,
    fail,
    warn,
)
from dsdoctor_checks._util import at_least, variable
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


#: Of a paste of `ds_report`, which does not print the folder.
_UNNAMED = "the folder that torch takes as `CUDA_HOME` has no usable nvcc"


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
    """A failure if an op must be built, a warning if one may have to be."""
    need = _ops.toolkit_need(torch, deepspeed, run, env, kernel, gpus)
    settled = need.settled()
    if settled is not None:
        yield settled
        return
    toolkit = toolkits.toolkit
    if toolkit is not None and toolkit.usable:
        return
    other = next((found for found in toolkits.found if found.usable), None)
    where = "there is no CUDA toolkit in `CUDA_HOME`, on PATH or in `/usr/local/cuda`"
    if toolkit is not None:
        at = f"the toolkit at `{toolkit.root}` has no usable nvcc"
        where = at if toolkit.root else _UNNAMED
    say = fail if need.certain else warn
    off = variable(env, "DS_BUILD_OPS") == "0" and need.use is not _ops.Use.PREBUILD
    name = (torch.cuda or "").replace(".", "-")
    channel = "conda-forge" if at_least(torch.cuda, "12.0") else f"nvidia/label/cuda-{torch.cuda}.0"
    install = (
        f"install the CUDA {torch.cuda} toolkit (`cuda-toolkit-{name}` from NVIDIA's repository, or"
        f" `conda install -c {channel} cuda-toolkit={torch.cuda}`)"
    )
    if off:
        install = f"{install}; `DS_BUILD_OPS=0` does not disable builds at first use"
    yield say(
        f"{where}, but building ops for torch {torch.version} needs nvcc for CUDA {torch.cuda}",
        effect=f"{need.words} cannot be built (`MissingCUDAException`)",
        hint=f"set `CUDA_HOME={other.root}` (CUDA {other.version})" if other else install,
        torch=torch.version,
        torch_cuda=torch.cuda,
        need=need.use.value,
        ops=list(need.ops),
        root=toolkit.root if toolkit else None,
        error=toolkit.error if toolkit else None,
        others=[found.root for found in toolkits.found if found.usable],
        other_cuda=other.version if other else None,
    )


HINT = "install the CUDA toolkit for torch's CUDA version and set `CUDA_HOME` to it"

SIGNATURES = (
    Signature(
        pattern=r"^(?!.*\[WARNING\]).*CUDA_HOME(?: environment variable)? (?:is not set|does not exist|is undefined|not set|is None)",
        source=(
            "torch 1.0-2.13 utils/cpp_extension.py; deepspeed 0.3-0.19 ops/op_builder/builder.py"
        ),
        examples=(
            "OSError: CUDA_HOME environment variable is not set.",
            "MissingCUDAException: CUDA_HOME does not exist, unable to compile CUDA op(s)",
            "CUDA_HOME is undefined",
            "CUDA_HOME not set",
            "CUDA_HOME is None",
        ),
        unless=("+rocm",),  # a torch for ROCm, where DeepSpeed found no ROCm
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"(?:No such file or directory|\[Errno 2\]|Errno 13)(?:.{0,40}|: ['\x22]/\S{1,300}/)nvcc\b",
        source=(
            "python 3.3-3.14 Objects/exceptions.c, with glibc's words for ENOENT: `nvcc` is "
            "started by torch's and DeepSpeed's builds"
        ),
        examples=(
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/nvcc'",
            "[Errno 2] No such file or directory: '/home/user/text-generation/installer_files/env/bin/nvcc'",
            "[Errno 2]nvcc",
            "Errno 13 ... nvcc",
        ),
        not_examples=(
            "/opt/env/lib/python3.8/site-packages/deepspeed/ops/csrc/lamb/fused_lamb_cuda_kernel.cu:13:10: fatal error: THC/THC.h: No such file or directory",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"nvcc['\x22]?:? (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=(
            "/bin/sh: 1: nvcc: not found",
            "bash: nvcc: command not found",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"nvcc['\x22]?: No such file",
        source="distutils of python 2.7-3.11, setuptools 40-60 _distutils/spawn.py",
        examples=("unable to execute '/usr/local/cuda/bin/nvcc': No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="/nvcc: (?:not found|No such)",
        source="dash 0.5 src/exec.c, bash 3.2-5.2 execute_cmd.c",
        examples=(
            "/bin/sh: 1: /usr/local/cuda/bin/nvcc: not found",
            "/nvcc: No such",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="Could not find nvcc",
        source="cmake 3.17-4.4 FindCUDAToolkit.cmake, Internal/CMakeCUDAFindToolkit.cmake; flashinfer 0.3-0.7 jit/cpp_ext.py",
        examples=("Could not find nvcc",),
        message="There is no CUDA toolkit (nvcc) to compile CUDA code with",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="nvcc was not found",
        source="xformers 0.0.29 third_party/flash-attention/csrc/rotary/setup.py, third_party/flash-attention/csrc/xentropy/setup.py",
        examples=("nvcc was not found",),
        message="There is no CUDA toolkit (nvcc) to compile CUDA code with",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="Unable to (?:find|locate) nvcc",
        source="build scripts of several projects that look for the compiler",
        examples=(
            "Unable to find nvcc",
            "Unable to locate nvcc",
        ),
        message="There is no CUDA toolkit (nvcc) to compile CUDA code with",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="which: no nvcc",
        source="GNU which 2.20-2.21 which.c",
        examples=("which: no nvcc",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"(?i)(?:cannot|could not|unable to) (?:find|locate)(?: a| the)? (?:valid )?CUDA(?:_HOME| toolkit| installation)?\b(?! (?:drivers?|devices?|GPUs?)\b)|name 'bare_metal_version' is not defined|CUDA_TOOLKIT_ROOT_DIR not found",
        source="flash-attn 2.0-2.8 setup.py, apex setup.py; cmake 2.8-3.27 Modules/FindCUDA.cmake",
        examples=(
            "NameError: name 'bare_metal_version' is not defined",
            "Cannot find CUDA installation.",
            "CUDA_TOOLKIT_ROOT_DIR not found or specified",
        ),
        not_examples=(
            "Could not find the bitsandbytes CUDA binary at PosixPath('/opt/env/lib/python3.11/site-packages/bitsandbytes/libbitsandbytes_cuda128.so')",
            "2026-11-02 09:14:07.310662: I external/local_tsl/tsl/cuda/cudart_stub.cc:31] Could not find cuda drivers on your machine, GPU will not be used.",
        ),
        # before DeepSpeed 0.6.3, ds_report misses nvcc for a torch of ROCm, too (deepspeed/env_report.py)
        not_near=tuple("torch hip version ................ " + major for major in "3456789"),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"unsupported operand type\(s\) for \+: 'NoneType' and 'str'",
        source="python 3.3-3.14 Objects/abstract.c, for setup scripts that add to `CUDA_HOME`",
        examples=(
            "TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
            "    TypeError: unsupported operand type(s) for +: 'NoneType' and 'str'",
        ),
        near=("nvcc", "cuda_home", "CUDA_HOME", "installed_cuda_version"),
    ),
    Signature(
        pattern=r"Could NOT find CUDA(?:Toolkit)? \(missing",
        source="cmake 2.8-4.0 Modules/FindPackageHandleStandardArgs.cmake",
        examples=("-- Could NOT find CUDA (missing: CUDA_TOOLKIT_ROOT_DIR CUDA_NVCC_EXECUTABLE)",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="CUDA_TOOLKIT_ROOT_DIR not found",
        source="cmake 2.8-4.0 Modules/FindCUDA.cmake",
        examples=("CUDA_TOOLKIT_ROOT_DIR not found or specified",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"Unable to run \S*nvcc, unable to compile",
        source="deepspeed 0.19 ops/op_builder/builder.py",
        examples=(
            "op_builder.builder.MissingCUDAException: Unable to run /usr/local/cuda/bin/nvcc, unable to compile CUDA op(s): x",
        ),
        not_examples=("to run /usr/local/cuda/bin/nvcc, unable to compile CUDA op(s): x",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="Failed to find nvcc",
        source="cmake 3.20-4.4 CMakeDetermineCUDACompiler.cmake, Internal/CMakeCUDAFindToolkit.cmake",
        examples=("Failed to find nvcc",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="set the CUDAToolkit_ROOT",
        source="cmake 3.20-4.4 CMakeDetermineCUDACompiler.cmake, Internal/CMakeCUDAFindToolkit.cmake",
        examples=("set the CUDAToolkit_ROOT",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"command '\S*nvcc' failed: No such",
        source="setuptools 60-84 _distutils/spawn.py, distutils of python 3.9-3.11",
        examples=("error: command '/usr/local/cuda/bin/nvcc' failed: No such file or directory",),
        not_examples=("'/usr/local/cuda/bin/nvcc' failed: No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="No CMAKE_CUDA_COMPILER could be found",
        source="cmake 3.8-4.4 Source/cmGlobalGenerator.cxx",
        examples=("  No CMAKE_CUDA_COMPILER could be found.",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="CMAKE_CUDA_COMPILER:? .{0,80}(?:not found|is not able to compile|is not a full path)",
        source="cmake 3.8-4.4 Source/cmGlobalGenerator.cxx, Modules/CMakeTestCUDACompiler.cmake, as a project puts it on a line",
        examples=(
            "CMAKE_CUDA_COMPILER not found",
            "CMAKE_CUDA_COMPILER is not able to compile",
            "CMAKE_CUDA_COMPILER is not a full path",
        ),
        not_examples=("-- CMAKE_CUDA_COMPILER: /usr/local/cuda/bin/nvcc",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="CMAKE_CUDA_COMPILER not set, after",
        source="cmake 3.8-4.0 Source/cmGlobalGenerator.cxx",
        examples=("CMake Error: CMAKE_CUDA_COMPILER not set, after EnableLanguage",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"The CMAKE_CUDA_COMPILER:\s*$",
        source="cmake 3.8-4.0 Source/cmGlobalGenerator.cxx",
        examples=("  The CMAKE_CUDA_COMPILER:",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="Could not find (?:compiler set in|the compiler specified in the) environment variable CUDACXX",
        source="cmake 3.8-4.2, and 4.3-4.4 in other words, Modules/CMakeDetermineCUDACompiler.cmake",
        examples=(
            "  Could not find compiler set in environment variable CUDACXX:",
            "  Could not find the compiler specified in the environment variable CUDACXX:",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="[Cc]annot find ptxas",
        source="triton 2.0-3.5 backends/nvidia/compiler.py, common/backend.py",
        examples=("RuntimeError: Cannot find ptxas",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="ptxas.? failed with error code 127",
        source="triton 2.1-3.9 backends/nvidia/compiler.py",
        examples=("RuntimeError: `ptxas` failed with error code 127:",),
        not_examples=(" failed with error code 127 ",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="cicc: (?:not found|No such)",
        source="dash 0.5 src/exec.c",
        examples=(
            "sh: 1: cicc: not found",
            "cicc: No such",
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"Errno (?:13|20)\].{0,120}nvcc'|No such file or directory: '\S*/cuda\S*/bin/(?:ptxas|cuobjdump|nvdisasm|fatbinary|nvlink)'",
        source=(
            "python 3.3-3.14 Objects/exceptions.c, with glibc's words for EACCES, ENOTDIR and "
            "ENOENT"
        ),
        examples=(
            "NotADirectoryError: [Errno 20] Not a directory: '/usr/local/cuda/bin/nvcc/bin/nvcc'",
            "PermissionError: [Errno 13] Permission denied: '/usr/local/cuda/bin/nvcc'",
            "FileNotFoundError: [Errno 2] No such file or directory: '/usr/local/cuda/bin/cuobjdump'",
        ),
        not_examples=(
            "PermissionError: [Errno 13] Permission denied: '/usr/local/cuda/version.txt'",
        ),
        level=Level.STRONG,
        masks=("path-not-writable", "cpu-adam-unbuilt"),
    ),
)

TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="_join_cuda_home",
        kinds=("OSError",),
        source="torch 1.10-2.13 utils/cpp_extension.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in _join_cuda_home\nOSError: x',
    ),
    TracebackRule(
        file="op_builder/builder.py",
        function="installed_cuda_version",
        source="deepspeed 0.9-0.19 op_builder/builder.py",
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/deepspeed/ops/op_builder/builder.py", line 7, in installed_cuda_version\nRuntimeError: x',
    ),
    TracebackRule(
        file="setup.py",
        function="raise_if_cuda_home_none",
        source="flash-attn 1-2, apex setup.py",
        example='Traceback (most recent call last):\n  File "/tmp/pip-install-x/apex/setup.py", line 7, in raise_if_cuda_home_none\nRuntimeError: x',
    ),
)
