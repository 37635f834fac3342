"""A CUDA library is missing or has the wrong release.

## Why it matters
A compiled extension needs the major version of the CUDA runtime that it was linked with, and the libraries of
one CUDA release, such as cuBLAS and cuBLASLt, need each other. If the loader finds one of another release
first, from a CUDA toolkit on `LD_LIBRARY_PATH` or from another package, the import fails.

## What to do
If the message names two libraries, unset `LD_LIBRARY_PATH` and try again; then reinstall torch, so that its
`nvidia-*` packages have the releases that it pins. If it names an extension, install the one built for
torch's CUDA version, which `python -c 'import torch; print(torch.version.cuda)'` prints.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "cuda-runtime-lib-mismatch",
    id="DSD250",
    scope=Scope.USER_ENV,
    since="0.1",
    narrower=("ld-library-path-shadows-torch",),
)

HINT = (
    "install the extension built for torch's CUDA version"
    " (`python -c 'import torch; print(torch.version.cuda)'`)"
)

_MIXED = "`{one}` and the `{other}` that was loaded are of different releases of CUDA"
_MIXED_HINT = "unset `LD_LIBRARY_PATH`, where a CUDA toolkit comes before torch's own libraries, and try again; if that does not help, reinstall torch with the `nvidia-*` packages that it pins (`python -m pip install --force-reinstall torch`)"

SIGNATURES = (
    Signature(
        pattern=r"(?P<one>lib[\w.+-]{1,80}\.so[\d.]{0,20}): undefined symbol: \w{1,120}, version (?P<other>lib(?!cudnn)(?:cu|nv)\w{1,40}\.so[\d.]{0,20})",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        message=_MIXED,
        hint=_MIXED_HINT,
        examples=(
            "ImportError: /x/nvidia/cublas/lib/libcublas.so.12: undefined symbol: cublasLtGetEnvironmentMode, version libcublasLt.so.12",
            "python: symbol lookup error: /x/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
        ),
        not_examples=(
            "/x/libcudnn_cnn.so.9: undefined symbol: a, version libcudnn_graph.so.9",
            "libcublas.so.12: undefined symbol: cublasLtGetEnvironmentMode",
        ),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"version `?(?P<other>lib(?!cudnn)(?:cu|nv)\w{1,40}\.so[\d.]{0,20})'? not found \(required by (?:[^()\s]{0,300}/)?(?P<one>lib[\w.+-]{1,80}\.so[\d.]{0,20})\)",
        source="glibc 2.17-2.41 elf/dl-version.c",
        message=_MIXED,
        hint=_MIXED_HINT,
        examples=(
            "ImportError: /usr/local/cuda/lib64/libcublasLt.so.12: version `libcublasLt.so.12' not found (required by /x/nvidia/cublas/lib/libcublas.so.12)",
            "ImportError: /x/libnvJitLink.so.12: version `libnvJitLink.so.12' not found (required by libcusparse.so.12)",
        ),
        not_examples=(
            "version `libcudnn.so.9' not found (required by libtorch.so)",
            "version `libcublasLt.so.12' not found (required by x)",
        ),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"(?P<one>lib[\w.+-]{1,80}\.so[\d.]{0,20}): symbol \w{1,120},? version \S{1,80} not defined in file (?P<other>lib(?!cudnn)(?:cu|nv)\w{1,40}\.so[\d.]{0,20})",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        message=_MIXED,
        hint=_MIXED_HINT,
        examples=(
            "OSError: /x/libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference",
            "ImportError: /x/libcusparse.so.12: symbol __nvJitLinkComplete_12_4, version libnvJitLink.so.12 not defined in file libnvJitLink.so.12 with link time reference",
        ),
        not_examples=("x.so: symbol f, version V not defined in file libfoo.so",),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"Error: (?P<library>lib(?:cusparseLt|cufile|cupti|nvshmem_host)\.so[\d.]*): cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c; torch 2.1-2.13 libtorch_cuda.so needs them",
        examples=(
            "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
            "ImportError: libcufile.so.0: cannot open shared object file: No such file or directory",
            "ImportError: libcupti.so.12: cannot open shared object file: No such file or directory",
            "OSError: libnvshmem_host.so.3: cannot open shared object file: No such file or directory",
        ),
        not_examples=(
            "Error: libcurand.so.10: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
        message="A library that torch itself needs is not found: `{library}`",
        hint="reinstall torch with its dependencies (`python -m pip install --force-reinstall torch`),"
        " with the index of its CUDA version",
    ),
    Signature(
        pattern=r"^(?!.*(?:dso_loader|Could not load dynamic library)).*(?P<library>lib(?:cudart|cublas|cublasLt|cufft|cusparse|nvrtc|cusolver|curand|nvToolsExt|cupti|cufile|cusparseLt|cudss|nvfatbin|nvshmem_host)(?:\.so|-)[\w.]*): cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libcudart.so.11.0: cannot open shared object file: No such file or directory",
            "OSError: libcublas.so.12: cannot open shared object file: No such file or directory",
            "libcublasLt.soname: cannot open shared object",
            "libcufft.soname: cannot open shared object",
            "libcusparse.soname: cannot open shared object",
            "libnvrtc.soname: cannot open shared object",
            "libcusolver.soname: cannot open shared object",
            "libcurand.soname: cannot open shared object",
            "libnvToolsExt.soname: cannot open shared object",
            "libcupti.soname: cannot open shared object",
            "libcufile.soname: cannot open shared object",
            "ImportError: libcusparseLt.so.0: cannot open shared object file: No such file or directory",
            "libcudss.soname: cannot open shared object",
            "libnvfatbin.soname: cannot open shared object",
            "libnvshmem_host.soname: cannot open shared object",
            "libcudart-name: cannot open shared object",
        ),
        not_examples=(
            "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.11.0'; dlerror: libcudart.so.11.0: cannot open shared object file",
        ),
        message="`{library}` is not found: an extension was built for a different release of CUDA than torch includes",
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"The third-party dynamic library \((?P<library>(?!libcuda\b)[\w.+-]{1,80})\) that Paddle depends on is not configured correctly",
        source="paddlepaddle 2.0-3.2 paddle/phi/backends/dynload/dynamic_loader.cc",
        message="PaddlePaddle does not find the library `{library}`",
        hint="add the folder of `{library}` to `LD_LIBRARY_PATH`, or install the library for the CUDA"
        " release that this paddlepaddle-gpu was built for",
        examples=(
            "RuntimeError: (PreconditionNotMet) The third-party dynamic library (libcudnn.so) that Paddle depends on is not configured correctly. (error code is libcudnn.so: cannot open shared object file)",
        ),
        not_examples=(
            "The third-party dynamic library (libcuda.so) that Paddle depends on is not configured correctly.",
        ),
        level=Level.CERTAIN,
        masks=("nccl-version-mismatch", "cudnn-mismatch"),
    ),
    Signature(
        pattern=r"version `?libcudart\.so[\d.]*'? not found",
        source="glibc 2.17-2.41 elf/dl-version.c",
        examples=(
            "ImportError: /x/y.so: version `libcudart.so.12' not found",
            "ImportError: /usr/local/cuda/lib64/libcudart.so.11.0: version `libcudart.so.11.0' not found (required by /x/z.so)",
        ),
        not_examples=("ImportError: /x/y.so: version `libcudart.so.12' not",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"undefined symbol: __nvJitLink|libnvJitLink\.so[.\d]*: (?:cannot open|version)",
        source=(
            "glibc 2.17-2.41 elf/dl-lookup.c, elf/dl-load.c, elf/dl-version.c; nvidia-nvjitlink-"
            "cu12 names the symbol"
        ),
        examples=(
            "ImportError: /x/libcusparse.so.12: undefined symbol: __nvJitLinkComplete_12_4, version libnvJitLink.so.12",
            "ImportError: libnvJitLink.so.12: cannot open shared object file: No such file or directory",
        ),
        not_examples=("libnvJitLink.so.12 loaded",),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"undefined symbol: (?:cublas|cusparse|cufft|cusolver|nvrtc|cuda)\w*(?!.*libbitsandbytes)|CUDA version mismatch! DeepSpeed ops were compiled|failed to open libnvrtc",
        source=(
            "glibc 2.17-2.41 elf/dl-lookup.c; nvrtc 11.0-13.0 libnvrtc.so; deepspeed 0.3-0.19 "
            "ops/op_builder/builder.py"
        ),
        examples=(
            "ImportError: /x/libtorch_cuda.so: undefined symbol: cublasLtGetStatusString, version libcublasLt.so.11",
            "nvrtc: error: failed to open libnvrtc-builtins.so.12.1.",
            "RuntimeError: CUDA version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime.",
        ),
        level=Level.STRONG,
        masks=("cxx-abi-undefined-symbol",),
    ),
    Signature(
        pattern=r"symbol \w+,? version \S+ not defined in file lib(?:cu|nv)\w+\.so|lib(?:cu|nv)\w+\.so\S* not found in the system path|failed to open nvrtc-builtins|PyTorch and (?!torchvision|torchaudio)\w+ were compiled with different CUDA",
        source=(
            "glibc 2.17-2.41 elf/dl-lookup.c; torch 2.0-2.13 __init__.py; torchvision 0.9-0.28 "
            "extension.py"
        ),
        examples=(
            "OSError: /x/libcublas.so.11: symbol cublasLtHSHMatmulAlgoInit version libcublasLt.so.11 not defined in file libcublasLt.so.11 with link time reference",
            "ValueError: libcublas.so.*[0-9] not found in the system path ['/usr/lib/python3']",
            "nvrtc: error: failed to open nvrtc-builtins64_118.dll.",
            "RuntimeError: Detected that PyTorch and torch_scatter were compiled with different CUDA versions.",
        ),
        not_examples=(
            "RuntimeError: Detected that PyTorch and torchvision were compiled with different CUDA major versions.",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern="libcudart functions unavailable",
        source="torch 2.13.0 cuda/__init__.py",
        examples=(
            "AssertionError: libcudart functions unavailable. It looks like you have a broken build?",
            "[rank0]: AssertionError: libcudart functions unavailable.",
        ),
    ),
)
