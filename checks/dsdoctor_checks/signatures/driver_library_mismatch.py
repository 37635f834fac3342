"""How `driver-library-mismatch` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "driver-library-mismatch"
TITLE = "kernel module and user-space NVIDIA library are of different versions"
HINT = "reboot, or unload and reload the nvidia modules after the update"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("river/library version mismatch", "API mismatch:", "version mismatch: the"),
        pattern=r"(?i)driver/library version mismatch|NVRM: API mismatch|kernel module.{0,60}version.{0,60}does not match",
        examples=(
            "Failed to initialize NVML: Driver/library version mismatch",
            "NVRM: API mismatch: the client has the version 535.1",
        ),
        not_examples=("driver version 535",),
        weight=80,
        masks=(
            "no-gpu-visible",
            "cuda-init-driver-state",
            "docker-gpu-runtime-missing",
            "container-lost-gpu",
        ),
    ),
    Signature(
        anchor=(
            "system has unsupported display driver",
            "cudaErrorSystemDriverMismatch",
            "(803)",
            "Error 803",
        ),
        pattern=(
            r"unsupported display driver|Error 803|cudaErrorSystemDriverMismatch"
            r"|runtime error \(803\)"
        ),
        examples=(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
        ),
        not_examples=("Error 80",),
        weight=74,
    ),
)
