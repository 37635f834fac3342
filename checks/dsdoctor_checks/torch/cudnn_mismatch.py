"""The loaded cuDNN is not the one that torch was built with.

## Why it matters
torch ships the cuDNN it was built with. If another one is loaded first, the first convolution fails or
returns wrong results.

## What to do
Remove the folder of the other cuDNN from `LD_LIBRARY_PATH`.

## References
Detected from logs only.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Level, Scope, Signature

CONDITION = Condition("cudnn-mismatch", id="DSD350", scope=Scope.USER_ENV, since="0.1")

HINT = "remove the folder of the other cuDNN from `LD_LIBRARY_PATH`"

SIGNATURES = (
    Signature(
        pattern=r"cuDNN version incompatibility|compiled against \(?\d.{0,30}but (?:linked against|runtime version)",
        source="torch 2.13.0 backends/cudnn/__init__.py",
        examples=(
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but found runtime version (8, 5, 0).",
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled against (7, 6, 5) but linked against (8, 0, 4)",
        ),
        not_examples=("against (7, 6, 5) but linked against (8, 0, 4)",),
        level=Level.CERTAIN,
    ),
    Signature(
        pattern=r"Error: libcudnn\.so\.\d+: cannot open shared object file",
        source="glibc 2.17-2.41 elf/dl-load.c, for torch's libtorch_cuda.so",
        examples=(
            "ImportError: libcudnn.so.9: cannot open shared object file: No such file or directory",
            "OSError: libcudnn.so.8: cannot open shared object file: No such file or directory",
        ),
        not_examples=("Error: libcudnn_ops.so.9: cannot open shared object file: No such file",),
        level=Level.STRONG,
        message="The cuDNN that torch needs is not found",
        hint="reinstall torch with its dependencies, which include cuDNN (`nvidia-cudnn-cu…`)",
    ),
    Signature(
        pattern="CUDNN_STATUS_NOT_INITIALIZED",
        source="cuDNN 7-9 cudnnGetErrorString, as torch 1.0-2.13 prints it",
        examples=("RuntimeError: cuDNN error: CUDNN_STATUS_NOT_INITIALIZED",),
        level=Level.WEAK,
        message="cuDNN could not start: GPU memory ran out, or another cuDNN than torch's is loaded",
        hint="free GPU memory, and remove the folders of other cuDNNs from `LD_LIBRARY_PATH`",
    ),
    Signature(
        pattern=r"(?:Could not load library|Unable to load any of).{0,40}libcudnn(?!.{0,40}libcuda\.so)|(?<!dlerror: )libcudnn\S*: cannot open|(?:undefined symbol|(?<!cuDNN )version).{0,120}libcudnn\S*(?! loaded)",
        source="cuDNN 8-9 libcudnn.so; glibc 2.17-2.41 elf/dl-load.c, elf/dl-lookup.c",
        examples=(
            "Could not load library libcudnn_cnn_infer.so.8. Error: libcudnn_cnn_infer.so.8: cannot open",
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}",
            "libcudnnx1: cannot open",
            "Could not load library libcudnn_cnn_train.so.8. Error: /usr/local/cuda/lib64/libcudnn_cnn_train.so.8: undefined symbol: _ZN5cudnn3cnn34layerNormFwd_execute_internal_implERKNS_7backend11VariantPackE, version libcudnn_cnn_infer.so.8",
        ),
        not_examples=(
            "libcudnn.so.8 loaded",
            "cuDNN version: Probably one of the following: /usr/lib/x86_64-linux-gnu/libcudnn.so.8",
            "cuDNN version: /usr/lib/x86_64-linux-gnu/libcudnn.so.7.6.5",
            # TensorFlow goes on without the GPU
            "W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcudnn.so.8'; dlerror: libcudnn.so.8: cannot open shared object file: No such file or directory",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"CUDNN_STATUS_(?:SUBLIBRARY_)?(?:VERSION_MISMATCH|SUBLIBRARY\w*)",
        source="cuDNN 7-9 cudnnGetErrorString, as torch 1.0-2.13 prints it",
        examples=(
            "RuntimeError: cuDNN error: CUDNN_STATUS_VERSION_MISMATCH",
            "RuntimeError: cuDNN error: CUDNN_STATUS_SUBLIBRARY_LOADING_FAILED",
        ),
        not_examples=("CUDNN_STATUS_SUCCESS",),
        level=Level.WEAK,
    ),
    Signature(
        pattern="Cannot load symbol cudnn",
        source="cuDNN 9.0-9.13 libcudnn.so",
        examples=(
            "Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor",
            "Invalid handle. Cannot load symbol cudnnGetLibConfig",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Loaded runtime CuDNN library: [\d.]+ but source was compiled with",
        source="tensorflow 1.0-2.20 xla/stream_executor/cuda/cuda_dnn.cc",
        examples=(
            "Loaded runtime CuDNN library: 8.0.5 but source was compiled with: 8.1.0.  CuDNN library needs to have matching major version",
            "E0101 cuda_dnn.cc:378] Loaded runtime CuDNN library: 7.6.5 but source was compiled with: 8.0.4.",
        ),
        not_examples=("Loaded runtime CuDNN library: 9.1.0",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"Could not locate (?:lib)?(?:cudnn\w{0,40}\.(?:dll|so)|zlibwapi\.dll)\b.{0,10}Please make sure it is in your library path",
        source="cuDNN 8 cudnn_ops_infer64_8.dll on Windows",
        examples=(
            "Could not locate cudnn_cnn_infer64_8.dll. Please make sure it is in your library path!",
            "Could not locate zlibwapi.dll. Please make sure it is in your library path!",
        ),
        not_examples=(
            "not locate cudnn_cnn_infer64_8.dll. Please make sure it is in your library path!",
        ),
    ),
)
