"""A prebuilt extension was built for another torch release or C++ ABI.

## Why it matters
torch's C++ symbols change from release to release. An extension built for another release or ABI fails
at import with an undefined symbol.

## What to do
Reinstall the extension for this torch. If there is no matching wheel, build it from source:
`pip install --force-reinstall --no-deps --no-cache-dir --no-build-isolation --no-binary :all: PACKAGE`.
Without `--no-cache-dir`, pip takes the wheel that it built for the other torch.

## References
Detected from logs, and from the imports that `compiled-extension-broken` tries.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition(
    "cxx-abi-undefined-symbol",
    id="DSD451",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("remove-stale-builds",),
)

HINT = (
    "reinstall the extension for this torch; without a matching wheel, build it from source with `pip"
    " install --force-reinstall --no-deps --no-cache-dir --no-build-isolation --no-binary :all: PACKAGE`"
)

SIGNATURES = (
    Signature(
        pattern=r"undefined symbol: _Z(?!N5cudnn)\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/y.cpython-310-x86_64-linux-gnu.so: undefined symbol: _ZN3c105ErrorC2E",
            "OSError: /x/libtorchaudio.so: undefined symbol: _ZNK5torch8autograd4Node4nameB5cxx11Ev",
        ),
        not_examples=(
            "undefined symbol: _Z is fine",
            "/usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn6launchEv",
        ),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"\.so\S*: undefined symbol: (?!nccl|curand|_Z|__nvJit|cudnn|cublas|cusparse|cufft|cusolver|cuda|nvrtc|MPI|ompi|pmix|io_)\w+",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=(
            "ImportError: /x/libtorch_cpu.so: undefined symbol: iJIT_NotifyEvent",
            "ImportError: /x/amp_C.cpython-38-x86_64-linux-gnu.so: undefined symbol: THPVariableClass",
        ),
        not_examples=(
            "ImportError: /opt/env/lib/python3.10/site-packages/torch/lib/libtorch_cuda.so: undefined symbol: ncclCommInitRankConfig",
        ),
    ),
    Signature(
        # as people shorten it in a title
        pattern=r"ImportError: \S{1,80}[ :]+undefined symbol(?!:)",
        source="glibc 2.17-2.41 elf/dl-lookup.c",
        examples=("ImportError: flash_attn_2_cuda undefined symbol on a new machine",),
        not_examples=("ImportError: what an undefined symbol is",),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"DLL load failed while importing \w+: The specified procedure",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=(
            "ImportError: DLL load failed while importing _C: The specified procedure could not be found.",
            "ImportError: DLL load failed while importing ext: The specified procedure could not be found.",
        ),
        not_examples=(
            "ImportError: DLL load failed while importing _C: %1 is not a valid Win32 application.",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"torchvision::nms does not exist|Couldn't load custom C\+\+ ops",
        source="torch 1.8-2.13 aten/src/ATen/core/dispatch/Dispatcher.cpp, torchvision 0.8-0.28 extension.py",
        examples=(
            "RuntimeError: x has no attribute; torchvision::nms does not exist",
            "RuntimeError: Couldn't load custom C++ ops. This can happen if your PyTorch and torchvision versions are incompatible",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"PyTorch version mismatch! DeepSpeed ops were compiled|dynamic module does not define module export function \(PyInit_",
        source="deepspeed 0.9-0.19 ops/op_builder/builder.py",
        examples=(
            "RuntimeError: PyTorch version mismatch! DeepSpeed ops were compiled and installed with a different version than what is being used at runtime.",
            "ImportError: dynamic module does not define module export function (PyInit_transformer_op)",
        ),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"DLL load failed while importing (?!_?torch|_C\b)\w*(?:flash|cuda|ext)\w*: The specified (?:module|procedure) could not",
        source="python 3.8-3.14 Python/dynload_win.c",
        examples=(
            "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified procedure could not be found.",
            "ImportError: DLL load failed while importing flash_attn_2_cuda: The specified module could not be found.",
            "DLL load failed while importing nameextname: The specified module could not",
        ),
        not_examples=(
            "ImportError: DLL load failed while importing _ssl: The specified module could not be found.",
        ),
    ),
    Signature(
        pattern=r"libtorch_cuda_c(?:u|pp)\.so: cannot open shared object|lib(?:c10|torch|torch_cpu|torch_python)\.so: cannot open shared object",
        source="glibc 2.17-2.41 elf/dl-load.c",
        examples=(
            "ImportError: libtorch_cuda_cu.so: cannot open shared object file: No such file or directory",
            "ImportError: libtorch_cuda_cpp.so: cannot open shared object file: No such file or directory",
            "ImportError: libc10.so: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"can't load C\+\+/CUDA extensions|xFormers was built for:",
        source="xformers 0.0.29 _cpp_lib.py",
        examples=(
            "WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:",
            "xFormers was built for:",
        ),
        level=Level.WEAK,
    ),
    Signature(
        pattern=r"'_OpNamespace' '\w+' object has no attribute '|[Ss]ymbol not found(?: in flat namespace|:) ['\u2018(]*__?Z|No module named 'flash_attn_2_cuda'",
        source=(
            "torch 1.8-2.13 _ops.py; macOS 11-15 dyld; python 3.6-3.14 Lib/importlib/_bootstrap.py"
        ),
        examples=(
            "AttributeError: '_OpNamespace' '_C' object has no attribute 'rms_norm'",
            "ImportError: dlopen(/x/_C.so, 0x0002): symbol not found in flat namespace '__ZN2at5equalE'",
            "ModuleNotFoundError: No module named 'flash_attn_2_cuda'",
        ),
        not_examples=("AttributeError: 'Trainer' object has no attribute '_OpNamespace'",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="xFormers wasn't buil[dt] with CUDA",
        source="xformers 0.0.29 ops/fmha/common.py",
        examples=(
            "    xFormers wasn't build with CUDA support",
            "`cutlassF` is not supported because: xFormers wasn't build with CUDA support",
        ),
        level=Level.WEAK,
    ),
)
