"""A header, a library or setuptools is missing during a build.

## Why it matters
A build includes headers of other packages, such as cuDNN, NCCL or CUTLASS, and of the system, and links
their libraries. If one of the CUDA toolkit itself is missing, that is `cuda-toolkit-incomplete`.

## What to do
Install the development package that contains the named header or library (`libcudnn9-dev-cuda-12`,
`libnccl-dev`, `build-essential`, …).

torch's builder of extensions imports `setuptools`, which `uv venv` and Python 3.12 do not put into a new
environment: `pip install setuptools`. The builder of torch 2.1 and older also imports `pkg_resources`,
which setuptools 82 removed: `pip install 'setuptools<82,!=70.*'`.

The driver's library is linked by the name `libcuda.so`, which only the driver's package or installer
brings, or a stub of the toolkit: run `export LIBRARY_PATH=/usr/local/cuda/lib64/stubs` for the build.

## References
- DeepSpeed 0.15.0-0.19.8 op_builder/async_io.py: `extra_ldflags` (`-lcuda`)
- torch 1.11-2.1 utils/cpp_extension.py: `from pkg_resources import packaging`
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Gpus,
    Level,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip, setuptools_for, setuptools_serves
from dsdoctor_checks._util import at_least, listed

from ._tables import OF_A_BUILD
from ._util import jit_ops

CONDITION = Condition(
    "build-dependency-missing",
    id="DSD452",
    scope=Scope.USER_ENV,
    since="0.1",
    formerly=("jit-build-header-or-lib-missing",),
)

#: The first DeepSpeed whose async_io is linked with the driver's library (0.14.5 is not).
_LINKS_DRIVER = "0.15.0"


@check(CONDITION)
def driver_can_be_linked(
    toolkits: CudaToolkits | Missing,
    torch: TorchBuild,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall,
    cache: ExtensionCache | Missing,
    gpus: Gpus | Missing,
    packages: Packages | Missing,
    patient: Patient | Missing,
    live: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges setuptools if the run builds an op, and the driver's library if that is `async_io`."""
    to_build = jit_ops(run, deepspeed, cache, live)
    if to_build is None and deepspeed.prebuilt:
        to_build = ()  # most jobs then build none
    if isinstance(packages, Packages) and (no := _setuptools(to_build, torch, packages, patient)):
        yield no
        return
    ops = to_build or ()
    if isinstance(toolkits, Missing):
        yield skip(toolkits.detail)
        return
    toolkit = toolkits.toolkit
    if (
        "async_io" not in ops
        or not torch.cuda
        or toolkit is None
        or (isinstance(gpus, Gpus) and not gpus.gpus)  # DeepSpeed builds for the CPU then
        or not at_least(deepspeed.version, _LINKS_DRIVER)
    ):
        yield skip("no op that this run builds is linked with the driver's library")
        return
    if toolkits.cuda_by_default:
        yield ok()
        return
    stubs = f"{toolkit.root}/{'lib' if toolkit.source == 'conda' else 'lib64'}/stubs"
    yield fail(
        "the config offloads to NVMe, for which DeepSpeed builds `async_io` and links it with `libcuda.so`,"
        " but the linker does not find that name",
        effect="the build stops with `cannot find -lcuda`",
        hint=f"for the build, run `export LIBRARY_PATH={stubs}` (the toolkit's stub of it,"
        " which must not be on `LD_LIBRARY_PATH`)",
        root=toolkit.root,
        ops=list(ops),
    )


def _setuptools(
    ops: tuple[str, ...] | None, torch: TorchBuild, packages: Packages, patient: Patient | Missing
) -> Finding | None:
    """What keeps torch's builder of extensions from being imported; None = nothing known."""
    if ops == ():
        return None
    wanted = setuptools_for(torch.version)
    hint = f"run `{pip(patient, packages, f'install {shlex.quote(wanted)}')}`"
    builds = f"this run builds {listed([f'`{op}`' for op in ops])}, but " if ops else ""
    if ops and packages.origins.get("setuptools") == "":
        return fail(
            f"{builds}`setuptools`, which torch's builder of extensions imports, is not installed",
            effect="the first op fails with `No module named 'setuptools'`",
            hint=hint,
            ops=list(ops),
            package="setuptools",
        )
    installed = packages.version("setuptools")
    if installed is None or setuptools_serves(torch.version, installed):
        return None
    gone = at_least(installed, "82")
    why = "No module named 'pkg_resources'" if gone else "cannot import name 'packaging'"
    builder = (
        f"the builder of extensions of torch {torch.version} imports `pkg_resources.packaging`"
    )
    return (fail if ops else warn)(
        f"{builds}{builder}, which setuptools {installed} does not have",
        effect=f"{'the first op' if ops else 'a job that builds an op'} fails with `{why}`",
        hint=hint,
        ops=list(ops or ()),
        package="setuptools",
    )


HINT = (
    "install the development package that contains the named header or library"
    " (`libcudnn9-dev-cuda-12`, `libnccl-dev`, `build-essential`, …)"
)

SIGNATURES = (
    Signature(
        pattern=r"No module named 'dskernels'",
        source="deepspeed 0.10.3-0.19 op_builder/inference_cutlass_builder.py, op_builder/ragged_ops.py",
        message="DeepSpeed's inference ops are to be built, and need `deepspeed-kernels`, which exists for Linux only",
        hint="leave them out: set `DS_BUILD_CUTLASS_OPS=0 DS_BUILD_RAGGED_DEVICE_OPS=0` for the build (on Windows, `DS_BUILD_OPS=0`), or on Linux run `python -m pip install deepspeed-kernels`",
        examples=("ModuleNotFoundError: No module named 'dskernels'",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "unsupported-on-windows"),
    ),
    Signature(
        pattern=r"fatal error: (?!Python\.h|pyconfig|libaio|aio|mpi\.h)(?P<h>[\w./+-]+\.(?:h|hpp|cuh|inc))['\x22]?:? (?:No such|file not found)|fatal error: '?(?!Python|libaio|aio)[\w./+-]+'? file not found|Cannot open include file: '(?!Python|libaio)",
        source=(
            "gcc 4.8-14 libcpp/files.cc, clang 3-19 DiagnosticCommonKinds; Microsoft C/C++ 19 "
            "cl.exe"
        ),
        examples=(
            "x.h:7:10: fatal error: cusparse.h: No such file or directory",
            "x.cu(5): fatal error C1083: Cannot open include file: 'cublas_v2.h': No such file or directory",
            "y.h:3:10: fatal error: 'cuda_runtime_api.h' file not found",
        ),
        not_examples=("x.h:12:10: fatal error: Python.h: No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"cannot find -lcuda\b(?!\.)",
        source="binutils 2.20-2.44 ld/ldmain.c",
        examples=(
            "/usr/bin/ld: cannot find -lcuda: No such file or directory",
            "/opt/env/bin/../lib/gcc/x86_64-conda-linux-gnu/12.4.0/../../../../x86_64-conda-linux-gnu/bin/ld: cannot find -lcuda",
        ),
        not_examples=("/usr/bin/ld: cannot find -lcuda.x",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        message="The linker does not find libcuda, the driver's library",
        hint="for the build, run `export LIBRARY_PATH=/usr/local/cuda/lib64/stubs` (the toolkit's stub of it, which"
        " must not be on `LD_LIBRARY_PATH`); for conda's linker, run"
        " `ln -s /usr/lib/x86_64-linux-gnu/libcuda.so.1 $CONDA_PREFIX/lib/libcuda.so`",
    ),
    Signature(
        pattern=r"(?:cannot find|library not found for) -l(?!aio\b|cufile\b|mpi|cuda\b)(?P<lib>[\w.+-]+)",
        source="binutils 2.20-2.44 ld/ldmain.c; Apple ld64 on macOS 10.9-14",
        examples=(
            "/usr/bin/ld: cannot find -lcurand: No such file or directory",
            "ld: library not found for -lcudart",
        ),
        not_examples=("ld: cannot find -laio", "ld: cannot find -lcufile"),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="cannot find -lcufile",
        source="binutils 2.20-2.44 ld/ldmain.c; deepspeed 0.15-0.19 ops/op_builder/gds.py",
        examples=("ld: cannot find -lcufile",),
        level=Level.STRONG,
        near=OF_A_BUILD,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        message="The op `gds` is built with GPUDirect Storage, whose library libcufile is not found",
        hint="install `libcufile-dev-12-9` (Debian) or `libcufile-devel-12-9` (Red Hat), with the release of the toolkit; or build without `DS_BUILD_GDS=1`, and leave `use_gds` out of the config",
    ),
    Signature(
        pattern=r"undefined symbol: curand\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/cpu_adam.so: undefined symbol: curandCreateGenerator",
            "ImportError: /x/transformer_inference_op.so: undefined symbol: curandSetStream",
        ),
        not_examples=("nm: 3 undefined symbol: curand* entries, all of libcurand",),
    ),
    Signature(
        pattern=r"cannot open source file \x22",
        source="nvcc 10-13 cudafe++ (EDG)",
        examples=(
            'error: cannot open source file "cuda_runtime.h"',
            'x.cu(3): catastrophic error: cannot open source file "cublas_v2.h"',
        ),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"CUTLASS_PATH (?P<path>\S{1,300}) does not contain",
        source="deepspeed 0.19.8 ops/op_builder/evoformer_attn.py",
        examples=("RuntimeError: CUTLASS_PATH /opt/cutlass does not contain CUTLASS headers",),
        not_examples=("CUTLASS_PATH  does not contain CUTLASS headers",),
        message="`CUTLASS_PATH` is {path}, which has no headers of CUTLASS; no other folder is searched while it is set",
        hint="set it to the root of a checkout of CUTLASS, whose folder `include` has them, or unset it and run `python -m pip install nvidia-cutlass`",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="Unable to locate CUTLASS",
        source="deepspeed 0.19.8 ops/op_builder/evoformer_attn.py",
        examples=(
            "RuntimeError: Unable to locate CUTLASS. Install nvidia-cutlass, clone CUTLASS next to DeepSpeed",
        ),
        message="Evoformer attention is built with CUTLASS, whose headers are not found",
        hint="run `python -m pip install nvidia-cutlass`, or set `CUTLASS_PATH` to a checkout of CUTLASS (the folder that contains `include`)",
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"undefined reference to `?(?:cu\w+|cublas\w+|cusparse\w+|cusolver\w+|curand\w+)",
        source="binutils 2.20-2.44 ld/ldmain.c",
        examples=(
            "multi.cu:(.text+0x1): undefined reference to `curandCreateGenerator'",
            "x.o: undefined reference to `cublasGemmEx'",
            "undefined reference to cusparsename",
            "undefined reference to cusolvername",
        ),
        not_examples=("undefined reference to `cu is fine",),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"fatal error: [a-z]\w*/\w+: No such file",
        source="gcc 4.8-14 libcpp/files.cc",
        examples=("cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory",),
        not_examples=("fatal error: optional: No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"ld: cannot find (?:crti|crt1|Scrt1|crtbegin\w*)\.o",
        source="binutils 2.20-2.44 ld/ldmain.c",
        examples=(
            "/usr/bin/ld: cannot find crti.o: No such file or directory",
            "ld: cannot find crt1.o",
            "ld: cannot find Scrt1.o",
            "/usr/bin/ld: cannot find crtbeginS.o: No such file or directory",
        ),
        not_examples=("/usr/bin/ld: cannot find -lcudart: No such file or directory",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="Path to libdevice library not specified",
        source="nvcc 9-13",
        examples=("nvcc fatal   : Path to libdevice library not specified",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="(?i:can't find) libdevice directory",
        source="xla 2019-2025 service/gpu/llvm_gpu_backend",
        examples=("can't find libdevice directory",),
        not_examples=("CAN'T FIND LIBDEVICE DIRECTORY is fine",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern="libdevice not found",
        source="torch 2.13.0 _inductor/runtime/compile_tasks.py",
        examples=("libdevice not found",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"undefined reference to .\w+@GLIBC_",
        source="binutils 2.20-2.44 ld/ldmain.c",
        examples=("libcudart_static.a: undefined reference to `dlsym@GLIBC_2.34'",),
        not_examples=("undefined reference to is fine",),
        level=Level.STRONG,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        pattern=r"Failed to find nvToolsExt|\x22?CUDA::\w+\x22? (?:references|but the target|which is not|target was not)|contains:? ?\x22?CUDA::\w+|libcuda\.so cannot (?:be )?found",
        source=(
            "torch 2.1-2.13 share/cmake/Caffe2/public/cuda.cmake; cmake 3.17-4.0 "
            "Source/cmTargetLinkLibraries; triton 2.0-3.1 common/build.py"
        ),
        examples=(
            "CMake Error at cmake/public/cuda.cmake:65 (message): Failed to find nvToolsExt",
            "AssertionError: libcuda.so cannot be found!",
            "AssertionError: libcuda.so cannot found!",
            'Target "torch_cuda" contains: CUDA::nvToolsExt but the target was not found',
        ),
        not_examples=("-- Found nvToolsExt, linking CUDA::nvToolsExt",),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern="Unable to JIT load the (?:evoformer_attn|cutlass_ops|inference_cutlass_builder) op",
        source="deepspeed 0.3-0.19 ops/op_builder/builder.py",
        examples=(
            "RuntimeError: Unable to JIT load the evoformer_attn op due to it not being compatible due to hardware/software issue. None",
            "RuntimeError: Unable to JIT load the cutlass_ops op due to it not being compatible",
            "Unable to JIT load the inference_cutlass_builder op",
        ),
        level=Level.WEAK,
        near=("CUTLASS", "cutlass"),
        masks=("cpu-adam-unbuilt",),
    ),
    # gcc stops like this only after a fatal error: a missing include
    Signature(
        pattern=r"^\s*compilation terminated\.\s*$",
        source="gcc 12.2.0 cc1plus, x86_64-linux-gnu-gcc-12",
        examples=(
            "compilation terminated.",
            "      compilation terminated.",
        ),
        level=Level.WEAK,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"^(?!.{0,8}-- ).{0,60}Could NOT find (?:CUDNN|cuDNN|NCCL|CUB|NvToolsExt|nvtx3|CUDSS|cuSPARSELt)\b.{0,12}\(missing:",
        source=(
            "cmake 2.8-4.0 Modules/FindPackageHandleStandardArgs.cmake, with modules of torch's "
            "share/cmake"
        ),
        examples=(
            "Could NOT find CUDNN (missing: CUDNN_LIBRARY_PATH CUDNN_INCLUDE_PATH)",
            "Could NOT find NCCL (missing: NCCL_LIBRARY)",
            "Could NOT find cuDNN ... (missing:",
            "Could NOT find CUB ... (missing:",
            "Could NOT find NvToolsExt ... (missing:",
            "Could NOT find nvtx3 ... (missing:",
            "Could NOT find CUDSS ... (missing:",
            "Could NOT find cuSPARSELt ... (missing:",
        ),
        not_examples=("-- Could NOT find CUDNN (missing: CUDNN_LIBRARY_PATH)",),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"error: can't find Rust compiler\b|\bCargo, the Rust package manager, is not installed or is not on PATH\b",
        source="setuptools-rust 0.12 setuptools_rust/utils.py, 1.0-1.12 setuptools_rust/command.py; maturin 0.12-1.9, maturin/__init__.py",
        message="A package is built from source, but Rust is not installed",
        hint="upgrade pip, so that it finds a prebuilt wheel, or use a Python version for which the package has one; else install Rust (rustup)",
        examples=(
            "      error: can't find Rust compiler",
            "Cargo, the Rust package manager, is not installed or is not on PATH.",
        ),
        not_examples=(
            "error: can't find Rust compilers",
            "Cargo, the Rust package manager, is not installed or is not on PATHS",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"\bCMake (?P<needed>\d+\.\d+[\d.]*) or higher is required\.  ?You are running version (?P<found>\d[\w.-]*)",
        source="cmake 2.6-4.4 Source/cmCMakeMinimumRequired.cxx",
        message="The build needs CMake {needed} or later, and {found} is installed",
        hint="install a newer CMake in the environment of the build (`pip install cmake`)",
        examples=("    CMake 3.26 or higher is required.  You are running version 3.16.3",),
        not_examples=("CMake or higher is required.  You are running version 3.16.3",),
        level=Level.STRONG,
    ),
)
