"""How `cudnn-mismatch` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "cudnn-mismatch"
TITLE = "another cuDNN is loaded than torch was built with"
HINT = "remove the foreign cuDNN from `LD_LIBRARY_PATH`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("cuDNN version incompatibility", "compiled against"),
        pattern=(
            r"cuDNN version incompatibility|compiled against \(?\d.{0,30}but (?:linked against"
            r"|runtime version)"
        ),
        examples=(
            "RuntimeError: cuDNN version incompatibility: PyTorch was compiled  against (8, 9, 2) but found runtime version (8, 5, 0).",
        ),
        not_examples=("compiled against numpy",),
        weight=72,
    ),
    Signature(
        anchor=("libcudnn",),
        pattern=(
            r"(?:Could not load library|Unable to load any of).{0,40}libcudnn"
            r"|libcudnn\S*: cannot open|(?:undefined symbol|version).{0,120}libcudnn\S*(?! loaded)"
        ),
        examples=(
            "Could not load library libcudnn_cnn_infer.so.8. Error: libcuda.so",
            "Unable to load any of {libcudnn_ops.so.9.1.0, libcudnn_ops.so.9}",
        ),
        not_examples=("libcudnn.so.8 loaded",),
        weight=62,
    ),
    Signature(
        anchor=("CUDNN_STATUS_", "cudnn"),
        pattern=(
            r"CUDNN_STATUS_(?:SUBLIBRARY_)?(?:VERSION_MISMATCH|NOT_INITIALIZED" r"|SUBLIBRARY\w*)"
        ),
        examples=("RuntimeError: cuDNN error: CUDNN_STATUS_VERSION_MISMATCH",),
        not_examples=("CUDNN_STATUS_SUCCESS",),
        weight=45,
    ),
    Signature(
        anchor="Invalid handle. Cannot load symbol cudnn",
        pattern=r"Cannot load symbol cudnn",
        examples=("Invalid handle. Cannot load symbol cudnnCreateTensorDescriptor",),
        not_examples=("load symbol",),
        weight=60,
    ),
)
