"""How `driver-too-old` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "driver-too-old"
TITLE = "the NVIDIA driver is older than the CUDA runtime needs"
HINT = "upgrade the driver, or install a torch build for the CUDA that `nvidia-smi` shows"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="driver version is insufficient",
        pattern=r"(?i)CUDA driver version is insufficient",
        examples=(
            "RuntimeError: cuda runtime error (35) : CUDA driver version is insufficient for CUDA runtime version",
        ),
        not_examples=("driver version 535",),
        weight=76,
        masks=("no-gpu-visible", "nccl-unhandled-cuda-error"),
    ),
    Signature(
        anchor=("driver on your system is too old", "driver is too old"),
        pattern=r"(?i)driver on your system is too old(?: \(found version (?P<v>\d+)\))?|NVIDIA driver is too old",
        examples=(
            "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
        ),
        not_examples=("the driver is new",),
        weight=76,
        masks=("no-gpu-visible",),
    ),
    Signature(
        anchor=(
            "PTX was compiled with an unsupported toolchain",
            "unsupported PTX version",
            "forward compatibility was attempted",
            "cudaErrorInsufficientDriver",
            "cudaErrorUnsupportedPtxVersion",
            "CUDA_ERROR_UNSUPPORTED_PTX_VERSION",
        ),
        pattern=(
            r"compiled with an unsupported toolchain|forward compatibility was attempted"
            r"|cudaErrorInsufficientDriver|UnsupportedPtxVersion|UNSUPPORTED_PTX_VERSION"
            r"|unsupported PTX version"
        ),
        examples=(
            "RuntimeError: CUDA error: the provided PTX was compiled with an unsupported toolchain.",
        ),
        not_examples=("PTX compiled",),
        weight=70,
    ),
    Signature(
        anchor=("unsatisfied condition: cuda", "requirement error"),
        pattern=r"unsatisfied condition: (?:cuda|driver)",
        examples=(
            "nvidia-container-cli: requirement error: unsatisfied condition: cuda>=12.4, please update your driver",
        ),
        not_examples=("condition satisfied",),
        weight=76,
        masks=("docker-gpu-runtime-missing",),
    ),
)
