"""The CUDA toolkit has nvcc, but headers or libraries that ops need are missing.

## Why it matters
Partial toolkits (distribution packages, conda's `cuda-nvcc`, PyPI wheels) contain only the compiler. The
build of an op then fails at an `#include` in torch's headers, or the linker does not find `-lcudart` or
`-lcurand`. DeepSpeed 0.14.3 and 0.14.4 link their CPU optimizers with cuRAND and do not say where it is.

## What to do
Install the whole toolkit, not just the compiler: `cuda-toolkit-X-Y` from NVIDIA's repository, or
`cuda-toolkit` from conda-forge.

## References
- ATen/cuda/CUDAContextLight.h of torch, which includes cuBLAS, cuSPARSE and cuSOLVER
- DeepSpeed op_builder/builder.py (`TorchCPUOpBuilder.extra_ldflags`) of 0.12.6 to 0.19.8 (`-lcurand`)
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
from dsdoctor_checks._util import at_least, listed
from dsdoctor_checks.cuda import _ops

CONDITION = Condition(
    "cuda-toolkit-incomplete",
    id="DSD203",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-cuda-toolkit",),
    leads_to=("build-dependency-missing",),
)


#: A package of its own in conda and apt.
_PROFILER = "cuda_profiler_api.h"
#: The first DeepSpeed whose csrc/includes/cpu_adam.h does not include it through gemm_test.h (0.14.2
#: does, 0.14.4 does not: their sources, read 2026-11-29); the transformer kernels still do.
_WITHOUT_PROFILER = "0.14.3"
_CPU_OPTIMIZERS = frozenset({"cpu_adam", "cpu_adagrad", "cpu_lion"})
_TRANSFORMERS = frozenset({"transformer", "transformer_inference", "stochastic_transformer"})
#: The first DeepSpeed whose CPU optimizers are not linked with cuRAND, and those that link with it
#: without the folder of the toolkit: 0.14.2 compiles a .cu file, for which torch adds that folder, 0.14.5
#: passes it (their sources, read 2026-11-29; deepspeedai/DeepSpeed#5659).
_WITHOUT_CURAND = "0.19.8"
_FOLDERLESS = ("0.14.3", "0.14.5")


def _links_curand(ops: tuple[str, ...], deepspeed: str | None) -> bool:
    """Whether one of these ops is a CPU optimizer that is linked with cuRAND."""
    new = deepspeed is None or at_least(deepspeed, _WITHOUT_CURAND)
    return not new and bool(_CPU_OPTIMIZERS & set(ops))


def _is_folderless(deepspeed: str | None) -> bool:
    first, after = _FOLDERLESS
    return deepspeed is not None and at_least(deepspeed, first) and not at_least(deepspeed, after)


def _uses_profiler(ops: tuple[str, ...], deepspeed: str | None) -> bool:
    """Whether the sources of one of these ops include the header of the profiler."""
    old = deepspeed is not None and not at_least(deepspeed, _WITHOUT_PROFILER)
    return bool(_TRANSFORMERS & set(ops)) or (old and bool(_CPU_OPTIMIZERS & set(ops)))


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
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    headers = [
        header
        for header in toolkit.missing_headers
        if header != _PROFILER or _uses_profiler(need.ops, version)
    ]
    lacking = [f"`{header}`" for header in headers]
    if not toolkit.has_cudart:
        lacking.append("`libcudart.so`")
    curand = _links_curand(need.ops, version) and not toolkits.curand_by_default
    if curand and not toolkit.has_curand:
        lacking.append("`libcurand.so`")
    say = fail if need.certain else warn
    if not lacking:
        if curand and _is_folderless(version):
            yield say(
                f"DeepSpeed {version} links {need.words} with `libcurand.so`, but does not tell the linker"
                f" that it is in `{toolkit.root}`",
                effect="the build stops with `cannot find -lcurand`",
                hint=f"install DeepSpeed 0.14.5 or newer, or run `export LIBRARY_PATH={toolkit.root}/lib64`",
                root=toolkit.root,
                deepspeed=version,
                ops=list(need.ops),
            )
        return
    yield say(
        f"the CUDA {toolkit.version} toolkit at `{toolkit.root}` has nvcc"
        f" but not {listed(lacking)}",
        effect=f"the build of {need.words} fails at the missing file",
        hint=f"install the whole CUDA {toolkit.version} toolkit, not just its compiler",
        root=toolkit.root,
        nvcc_cuda=toolkit.version,
        missing_headers=headers,
        has_cudart=toolkit.has_cudart,
        need=need.use.value,
        ops=list(need.ops),
    )


HINT = "install the whole CUDA toolkit of torch's CUDA version, not just its compiler: `cuda-toolkit-X-Y` from NVIDIA's repository, or `cuda-toolkit` from conda-forge"
#: What a missing file of the toolkit explains; the first reports such a file of any package.
_FOLLOWS = (
    "build-dependency-missing",
    "cpu-adam-unbuilt",
    "jit-build-stale-lock",
    "nccl-timeout-watchdog",
)
#: Headers of the toolkit that torch and DeepSpeed include, not those of cuDNN, NCCL or a project that
#: names its own alike (`include` of the toolkits 10.2 to 13.0, read 2026-11-28).
_HEADER = (
    r"(?:cuda(?:_(?:runtime|fp|bf|prof)\w*)?\.h|cu(?:blas|fft|rand|solver|sparse)\w*\.h|nvrtc\.h"
    r"|nvToolsExt\w*\.h|nv/target|(?:thrust|cub|crt)/\w+)"
)

SIGNATURES = (
    Signature(
        pattern=rf"fatal error: '?{_HEADER}[\w./]*'?:? (?:No such|file not found)",
        source="gcc 4.8-14 libcpp/files.cc, clang 3-19 DiagnosticCommonKinds",
        examples=(
            "x.h:7:10: fatal error: cusparse.h: No such file or directory",
            "x.h:7:10: fatal error: cuda_profiler_api.h: No such file or directory",
            "y.h:3:10: fatal error: 'cuda_runtime_api.h' file not found",
            "cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory",
            "x.cuh:4:10: fatal error: thrust/complex.h: No such file or directory",
            "x.h:7:10: fatal error: nvrtc.h: No such file or directory",
            "x.h:7:10: fatal error: nvToolsExt.h: No such file or directory",
        ),
        not_examples=(
            "x.h:7:10: fatal error: cudnn.h: No such file or directory",
            "x.h:7:10: fatal error: cuda_kernels.h: No such file or directory",
        ),
        level=Level.STRONG,
        masks=_FOLLOWS,
    ),
    Signature(
        pattern=rf"Cannot open include file: '{_HEADER}",
        source="Microsoft C/C++ 19 cl.exe",
        examples=(
            "x.cu(5): fatal error C1083: Cannot open include file: 'cublas_v2.h': No such file or directory",
            "x.cu(5): fatal error C1083: Cannot open include file: 'cuda_runtime.h': No such file",
            "x.cu(5): fatal error C1083: Cannot open include file: 'nvrtc.h': No such file",
            "x.cu(5): fatal error C1083: Cannot open include file: 'nvToolsExt.h': No such file",
            "x.cu(5): fatal error C1083: Cannot open include file: 'nv/target': No such file",
            "x.cu(5): fatal error C1083: Cannot open include file: 'cub/cub.cuh': No such file",
        ),
        not_examples=(
            "x.cu(5): fatal error C1083: Cannot open include file: 'io.h': No such file or directory",
        ),
        level=Level.STRONG,
        masks=_FOLLOWS,
    ),
    Signature(
        pattern=rf"cannot open source file \x22{_HEADER}",
        source="nvcc 10-13 cudafe++ (EDG)",
        examples=(
            'error: cannot open source file "cuda_runtime.h"',
            'x.cu(3): catastrophic error: cannot open source file "cublas_v2.h"',
            'error: cannot open source file "nvrtc.h"',
            'error: cannot open source file "nvToolsExt.h"',
            'error: cannot open source file "nv/target"',
            'error: cannot open source file "thrust/complex.h"',
        ),
        not_examples=('error: cannot open source file "cudnn.h"',),
        level=Level.STRONG,
        masks=_FOLLOWS,
    ),
    Signature(
        pattern=r"(?:cannot find|library not found for) -l(?P<lib>(?:cudart|cublas|curand|cusparse|cusolver|cufft|nvrtc|nvToolsExt)\w*)",
        source="binutils 2.20-2.44 ld/ldmain.c; Apple ld64 on macOS 10.9-14",
        examples=(
            "/usr/bin/ld: cannot find -lcurand: No such file or directory",
            "ld: library not found for -lcudart",
            "/usr/bin/ld: cannot find -lcublasLt: No such file or directory",
            "/usr/bin/ld: cannot find -lcusparse",
            "/usr/bin/ld: cannot find -lcusolver",
            "/usr/bin/ld: cannot find -lcufft",
            "/usr/bin/ld: cannot find -lnvrtc",
            "/usr/bin/ld: cannot find -lnvToolsExt",
        ),
        not_examples=("ld: cannot find -lcuda", "ld: library not found for -lomp"),
        level=Level.STRONG,
        masks=_FOLLOWS,
    ),
)
