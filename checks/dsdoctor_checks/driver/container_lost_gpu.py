"""A running container has lost its access to the GPUs.

## Why it matters
With the systemd cgroup driver a `systemctl daemon-reload` on the host takes the device rules of
running containers away. NVML then ends with "Unknown Error", and new processes find no GPU; those
that run already go on.

## What to do
Start the container anew. To keep it from happening again, name the device nodes when the container
is made (`--device /dev/nvidia0 …` or CDI), or use the `cgroupfs` driver.

## References
- https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
- nvml.h: `NVML_ERROR_UNKNOWN` (999)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    NvidiaSmi,
    Nvml,
    OsInfo,
    Scope,
    Signature,
    TorchLive,
    check,
    fail,
)
from dsdoctor_checks._util import cuda_works
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "container-lost-gpu",
    id="DSD110",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible",),
)


@check(CONDITION)
def container_keeps_gpu(
    os: OsInfo, nvml: Nvml | Missing, smi: NvidiaSmi | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """NVML's unknown error inside a container, where CUDA does not work either."""
    if os.container is None or cuda_works(live):
        return
    code = nvml.error.code if isinstance(nvml, Nvml) and nvml.error else None
    words = smi.error if isinstance(smi, NvidiaSmi) else None
    by_smi = "Unknown Error" in (words or "")
    if code != _tables.NVML_UNKNOWN and not by_smi:
        return
    witness = f"NVML ends with error {code}" if code else "`nvidia-smi` says"
    yield fail(
        f"{witness} (Unknown Error) in this {os.container} container: its access to the GPUs"
        " was taken away",
        effect="new processes find no GPU",
        hint="start the container anew, and give it the device nodes or CDI devices by name",
        code=code,
        container=os.container,
        nvidia_smi=words,
    )


HINT = "recreate the container; set `native.cgroupdriver=cgroupfs` in Docker or pass the device nodes with `--device`"

SIGNATURES = (
    Signature(
        anchor="Failed to initialize NVML: Unknown Error",
        pattern=r"Failed to initialize NVML: Unknown Error",
        examples=(
            "Failed to initialize NVML: Unknown Error",
            "nvidia-smi: Failed to initialize NVML: Unknown Error",
        ),
        not_examples=(
            "Failed to initialize NVML: Driver/library version mismatch",
            "Failed to initialize NVML: Insufficient Permissions",
        ),
        weight=75,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
    Signature(
        anchor="NVMLError_Unknown",
        pattern="NVMLError_Unknown: Unknown Error",
        examples=(
            "pynvml.NVMLError_Unknown: Unknown Error",
            "pynvml.nvml.NVMLError_Unknown: Unknown Error",
        ),
        not_examples=("except NVMLError_Unknown:",),
        weight=70,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
    Signature(
        anchor=("Unknown Error", "NVML error: unknown error", "nvml error: unknown error"),
        pattern=r"\bNVMLError: Unknown Error|(?:NVML|nvml)\w*(?: \w+){0,3}: Unknown Error|(?:NVML|nvml) error: unknown error",
        examples=(
            "pynvml.NVMLError: Unknown Error",
            "Error: nvmlInit failed: Unknown Error",
            "NVML error: Unknown Error",
        ),
        not_examples=("HTTP 520: Unknown Error", "GPU 0000:01:00.0: Unknown Error"),
        weight=66,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
)
