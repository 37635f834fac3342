"""How `container-lost-gpu` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "container-lost-gpu"
TITLE = "the running container has lost its access to the GPU"
HINT = "recreate the container; set `native.cgroupdriver=cgroupfs` in Docker or pass the device nodes with `--device`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor="Failed to initialize NVML: Unknown Error",
        pattern=r"Failed to initialize NVML: Unknown Error",
        examples=("Failed to initialize NVML: Unknown Error",),
        not_examples=("Failed to initialize NVML: Driver/library version mismatch",),
        weight=75,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
)
