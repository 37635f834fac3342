"""A CUDA or system header or library is missing in the build.

## Why it matters
A JIT build includes headers of CUDA and links its libraries; a partial toolkit has the compiler
without them.

## What to do
Install the development package that holds the named header or library (`cuda-libraries-dev`,
`cuda-cudart-dev`, ...).

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition(
    "jit-build-header-or-lib-missing", id="DSD452", scope=Scope.USER_ENV, since="0.1"
)

HINT = "install the development package that holds the named header or library (`cuda-libraries-dev`, `cuda-cudart-dev`, ...)"

SIGNATURES = (
    Signature(
        anchor=("fatal error:", "Cannot open include file", "atastrophic error"),
        pattern=(
            r"fatal error: (?!Python\.h|pyconfig|libaio|aio|mpi\.h)(?P<h>[\w./+-]+\.(?:h"
            r"|hpp|cuh|inc))['\x22]?:? (?:No such|file not found)|fatal error: '?(?!Python"
            r"|libaio|aio)[\w./+-]+'? file not found|Cannot open include file: '(?!Python|libaio)"
        ),
        examples=(
            "x.h:7:10: fatal error: cusparse.h: No such file or directory",
            "x.cu(5): fatal error C1083: Cannot open include file: 'cublas_v2.h': No such file or directory",
            "y.h:3:10: fatal error: 'cuda_runtime_api.h' file not found",
        ),
        not_examples=("x.h:12:10: fatal error: Python.h: No such file or directory",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("cannot find -l", "library not found for -l"),
        pattern=r"(?:cannot find|library not found for) -l(?!aio\b|mpi)(?P<lib>[\w.+-]+)",
        examples=(
            "/usr/bin/ld: cannot find -lcurand: No such file or directory",
            "ld: library not found for -lcudart",
        ),
        not_examples=("ld: cannot find -laio",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor="undefined symbol: curand",
        pattern=r"undefined symbol: curand\w+",
        examples=(
            "ImportError: /x/cpu_adam.so: undefined symbol: curandCreateGenerator",
            "ImportError: /x/transformer_inference_op.so: undefined symbol: curandSetStream",
        ),
        not_examples=(
            "undefined symbol: _ZN3c10",
            "nm: 3 undefined symbol: curand* entries, all of libcurand",
        ),
        weight=56,
    ),
    Signature(
        anchor="cannot open source file",
        pattern=r"cannot open source file \x22",
        examples=(
            'error: cannot open source file "cuda_runtime.h"',
            'x.cu(3): catastrophic error: cannot open source file "cublas_v2.h"',
        ),
        not_examples=("cannot open source file: use --src",),
        weight=60,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor="CUTLASS",
        pattern=r"Unable to locate CUTLASS|CUTLASS_PATH \S+ does not contain",
        examples=(
            "RuntimeError: Unable to locate CUTLASS. Install nvidia-cutlass, clone CUTLASS next to DeepSpeed",
            "RuntimeError: CUTLASS_PATH /opt/cutlass does not contain CUTLASS headers",
        ),
        not_examples=(
            "[WARNING]  Please specify the CUTLASS repo directory as environment variable $CUTLASS_PATH",
        ),
        weight=60,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("undefined reference to", "undefined symbol: "),
        pattern=r"undefined reference to `?(?:cu\w+|cublas\w+|cusparse\w+|cusolver\w+|curand\w+)",
        examples=(
            "multi.cu:(.text+0x1): undefined reference to `curandCreateGenerator'",
            "x.o: undefined reference to `cublasGemmEx'",
        ),
        not_examples=("undefined reference to `main'",),
        weight=56,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("fatal error: ", "ld: cannot find ", "libdevice", "@GLIBC_"),
        pattern=(
            r"fatal error: [a-z]\w*/\w+: No such file|ld: cannot find (?:crti|crt1|Scrt1|crtbegin\w*)\.o"
            r"|Path to libdevice library not specified|(?i:can't find) libdevice directory|libdevice not found"
            r"|undefined reference to .\w+@GLIBC_"
        ),
        examples=(
            "cuda_fp16.h:4100:10: fatal error: nv/target: No such file or directory",
            "/usr/bin/ld: cannot find crti.o: No such file or directory",
            "nvcc fatal   : Path to libdevice library not specified",
            "libcudart_static.a: undefined reference to `dlsym@GLIBC_2.34'",
        ),
        not_examples=(
            "fatal error: optional: No such file or directory",
            "using libdevice of /usr/local/cuda/nvvm",
        ),
        weight=62,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("nvToolsExt", "libcuda.so cannot be found", "CUDA::"),
        pattern=(
            r"Failed to find nvToolsExt|\x22?CUDA::\w+\x22? (?:references|but the target|which is not|target was not)"
            r"|contains:? ?\x22?CUDA::\w+|libcuda\.so cannot be found"
        ),
        examples=(
            "CMake Error at cmake/public/cuda.cmake:65 (message): Failed to find nvToolsExt",
            "AssertionError: libcuda.so cannot be found!",
            'Target "torch_cuda" contains: CUDA::nvToolsExt but the target was not found',
        ),
        not_examples=("-- Found nvToolsExt, linking CUDA::nvToolsExt",),
        weight=52,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=(
            "evoformer_attn op",
            "cutlass_ops op",
            "inference_cutlass_builder op",
            "inference_core_ops op",
        ),
        pattern=r"Unable to JIT load the (?:evoformer_attn|cutlass_ops|inference_cutlass_builder) op",
        examples=(
            "RuntimeError: Unable to JIT load the evoformer_attn op due to it not being compatible due to hardware/software issue. None",
            "RuntimeError: Unable to JIT load the cutlass_ops op due to it not being compatible",
        ),
        not_examples=(
            "RuntimeError: Unable to JIT load the inference_core_ops op due to it not being compatible",
        ),
        weight=46,
        near=("CUTLASS", "cutlass"),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        # gcc gives up like this after a fatal error only: an include that is not there
        anchor=("compilation terminated",),
        pattern=r"^\s*compilation terminated\.\s*$",
        examples=("compilation terminated.", "      compilation terminated."),
        not_examples=("compilation terminated due to -Wfatal-errors.",),
        weight=39,
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=("Could NOT find",),
        pattern=r"^(?!.{0,8}-- ).{0,60}Could NOT find (?:CUDNN|cuDNN|NCCL|CUB|NvToolsExt|nvtx3|CUDSS|cuSPARSELt)\b.{0,12}\(missing:",
        examples=(
            "Could NOT find CUDNN (missing: CUDNN_LIBRARY_PATH CUDNN_INCLUDE_PATH)",
            "Could NOT find NCCL (missing: NCCL_LIBRARY)",
        ),
        not_examples=("-- Could NOT find CUDNN (missing: CUDNN_LIBRARY_PATH)",),
        weight=56,
        masks=("cpu-adam-unbuilt",),
    ),
)
