"""How `nvcc-arch-unsupported` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "nvcc-arch-unsupported"
TITLE = "nvcc does not know the architecture asked for"
HINT = "install a newer toolkit, or set `TORCH_CUDA_ARCH_LIST` to what it knows"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "Unsupported gpu arch",
            "Unknown CUDA arch",
            "is not defined for option 'gpu-architecture'",
            "Unsupported NVVM",
        ),
        pattern=(r"Unsupported gpu arch\w+|Unknown CUDA arch|not defined for option 'gpu-arch"),
        examples=(
            "nvcc fatal   : Unsupported gpu architecture 'compute_89'",
            "ValueError: Unknown CUDA arch (Foo) or GPU not supported",
        ),
        not_examples=("gpu-architecture sm_80",),
        weight=72,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
