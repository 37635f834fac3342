"""An extension needs the CUDA runtime of another major version than torch brings.

## Why it matters
A compiled extension names the CUDA runtime that it was linked with; the loader does not take one
of another major version in its stead.

## What to do
Install the extension built for the CUDA of torch (`python -c 'import torch;
print(torch.version.cuda)'`).

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("cuda-runtime-lib-mismatch", id="DSD250", scope=Scope.USER_ENV, since="0.1")

HINT = "install the extension built for the CUDA of torch (`python -c 'import torch; print(torch.version.cuda)'`)"

SIGNATURES = (
    Signature(
        anchor=(
            "libcudart.so",
            "libcudart-",
            "libcublas.so",
            "libcufft.so",
            "libcusparse.so",
            "libnvrtc.so",
            "libcusolver.so",
            "libcurand.so",
            "libcublasLt.so",
            "libnvToolsExt.so",
            "libcupti.so",
            "libcufile.so",
            "libcusparseLt.so",
            "libcudss.so",
            "libnvfatbin.so",
            "libnvshmem_host.so",
            ": cannot open shared object",
        ),
        pattern=(
            r"^(?!.*(?:dso_loader|Could not load dynamic library)).*lib(?:cudart|cublas|cublasLt|cufft|cusparse|nvrtc|cusolver"
            r"|curand|nvToolsExt|cupti|cufile|cusparseLt|cudss|nvfatbin|nvshmem_host)(?:\.so|-)[\w.]*: cannot open shared object"
        ),
        examples=(
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "OSError: libcublas.so.12: cannot open shared object file: No such file or directory",
        ),
        not_examples=(
            "libcudart.so.12 => /usr/lib/libcudart.so.12",
            "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file",
        ),
        weight=66,
    ),
    Signature(
        anchor=("libcudart.so",),
        pattern=r"version `?libcudart\.so[\d.]*'? not found",
        examples=(
            "ImportError: /x/y.so: version `libcudart.so.12' not found",
            "ImportError: /usr/local/cuda/lib64/libcudart.so.11.0: version `libcudart.so.11.0' not found (required by /x/z.so)",
        ),
        not_examples=("libcudart.so.12 found",),
        weight=66,
    ),
    Signature(
        anchor=("nvJitLink",),
        pattern=(
            r"undefined symbol: __nvJitLink|libnvJitLink\.so[.\d]*: (?:cannot open" r"|version)"
        ),
        examples=(
            "ImportError: /x/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
            "ImportError: libnvJitLink.so.12: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libnvJitLink.so.12 loaded",),
        weight=68,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        anchor=(
            "undefined symbol: cu",
            "undefined symbol: nvrtc",
            "version mismatch! DeepSpeed ops",
            "failed to open libnvrtc",
            "CUBLAS_STATUS_INVALID_VALUE",
            "nvrtc-builtins",
        ),
        pattern=(
            r"undefined symbol: (?:cublas|cusparse|cufft|cusolver"
            r"|nvrtc|cuda)\w*(?!.*libbitsandbytes)|CUDA version mismatch! DeepSpeed ops were compiled"
            r"|failed to open libnvrtc"
        ),
        examples=(
            "ImportError: /x/libtorch_cuda.so: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11",
            "nvrtc: error: failed to open libnvrtc-builtins.so.12.1.",
            "RuntimeError: CUDA version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime.",
        ),
        not_examples=(
            "undefined symbol: curandCreateGenerator",
            "undefined symbol: cudnnGetVersion",
        ),
        weight=60,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        anchor=(
            "not defined in file lib",
            "not found in the system path",
            "failed to open nvrtc-builtins",
            "were compiled with different CUDA",
        ),
        pattern=(
            r"symbol \w+,? version \S+ not defined in file lib(?:cu|nv)\w+\.so"
            r"|lib(?:cu|nv)\w+\.so\S* not found in the system path|failed to open nvrtc-builtins"
            r"|PyTorch and (?!torchvision|torchaudio)\w+ were compiled with different CUDA"
        ),
        examples=(
            "OSError: /x/libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference",
            "ValueError: libcublas.so.*[0-9] not found in the system path ['/usr/lib/python3']",
            "nvrtc: error: failed to open nvrtc-builtins64_118.dll.",
            "RuntimeError: Detected that PyTorch and torch_scatter were compiled with different CUDA versions.",
        ),
        not_examples=(
            "symbol foo version V2 not defined in file libbar.so.1 with link time reference",
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
        ),
        weight=62,
    ),
    Signature(
        anchor=("libcudart functions unavailable",),
        pattern=r"libcudart functions unavailable",
        examples=(
            "AssertionError: libcudart functions unavailable. It looks like you have a broken build?",
            "[rank0]: AssertionError: libcudart functions unavailable.",
        ),
        not_examples=("libcudart functions are wrapped by ctypes",),
        weight=56,
    ),
)
