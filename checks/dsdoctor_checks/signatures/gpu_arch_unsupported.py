"""How `gpu-arch-unsupported` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "gpu-arch-unsupported"
TITLE = "torch or an extension has no kernels for this GPU"
HINT = "install a torch build that lists the GPU's architecture (cu128 or newer for sm_120)"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=(
            "is not compatible with the current PyTorch",
            "no kernel image is available",
            "invalid device function",
            "no longer supports this GPU",
            "cudaErrorNoKernelImageForDevice",
            "device kernel image is invalid",
        ),
        pattern=(
            r"is not compatible with the current PyTorch|no kernel image is available"
            r"|CUDA error:? ?\S* ?invalid device function|PyTorch no longer supports this GPU"
            r"|NoKernelImageForDevice|device kernel image is invalid|runtime error \((?:48"
            r"|8|209)\)"
        ),
        examples=(
            "RuntimeError: CUDA error: no kernel image is available for execution on the device",
            "GeForce X with CUDA capability sm_120 is not compatible with the current PyTorch installation.",
        ),
        not_examples=("invalid device function name",),
        weight=68,
    ),
)
