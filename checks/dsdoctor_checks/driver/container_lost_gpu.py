"""A running container has lost access to its GPUs.

## Why it matters
With Docker's systemd cgroup driver, `systemctl daemon-reload` on the host resets the device rules of
running containers. NVML then returns "Unknown Error", and new processes find no GPU. Processes that
already use a GPU keep running.

## What to do
Restart the container. To prevent it, create the container with explicit device nodes
(`--device /dev/nvidia0 …`) or CDI devices, or switch Docker to the `cgroupfs` driver.

## References
- https://github.com/NVIDIA/nvidia-container-toolkit/issues/48
- nvml.h: `NVML_ERROR_UNKNOWN` (999)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    GpuTopology,
    Level,
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
from dsdoctor_checks._where import this_container
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "container-lost-gpu",
    id="DSD110",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("no-gpu-visible",),
    blinds=(Gpus, GpuTopology),
)


@check(CONDITION)
def container_keeps_gpu(
    os: OsInfo, nvml: Nvml | Missing, smi: NvidiaSmi | Missing, live: TorchLive | Missing
) -> Iterator[Finding]:
    """NVML returns its unknown error inside a container, and CUDA does not work either."""
    if os.container is None or cuda_works(live):
        return
    code = nvml.error.code if isinstance(nvml, Nvml) and nvml.error else None
    words = smi.error if isinstance(smi, NvidiaSmi) else None
    by_smi = "Unknown Error" in (words or "")
    if code != _tables.NVML_UNKNOWN and not by_smi:
        return
    witness = f"NVML returns error {code}" if code else "`nvidia-smi` reports an error"
    yield fail(
        f"{witness} (Unknown Error) in {this_container(os.container)}: it has lost access to"
        " its GPUs",
        effect="new processes find no GPU",
        hint="restart the container; create it with explicit device nodes or CDI devices to prevent this",
        code=code,
        container=os.container,
        nvidia_smi=words,
    )


HINT = (
    "restart the container; to prevent it, set `native.cgroupdriver=cgroupfs` in Docker or pass the"
    " device nodes with `--device`"
)

SIGNATURES = (
    Signature(
        pattern="Failed to initialize NVML: Unknown Error|failed to initialize (?:nvml|NVML):? unknown error",
        source="NVIDIA driver 390-590 nvidia-smi, and reports that repeat it in a sentence",
        examples=(
            "nvidia-smi gives **failed to initialize nvml unknown error** after a few hours",
            "nvidia-smi says failed to initialize NVML: unknown error",
            "Failed to initialize NVML: Unknown Error",
            "nvidia-smi: Failed to initialize NVML: Unknown Error",
        ),
        level=Level.CERTAIN,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
    Signature(
        pattern="NVMLError_Unknown: Unknown Error",
        source="nvidia-ml-py 11-13 pynvml.py",
        examples=(
            "pynvml.NVMLError_Unknown: Unknown Error",
            "pynvml.nvml.NVMLError_Unknown: Unknown Error",
        ),
        level=Level.CERTAIN,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
    Signature(
        pattern=r"\bNVMLError: Unknown Error|(?:NVML|nvml)\w*(?: \w+){0,3}: Unknown Error|(?:NVML|nvml) error: unknown error",
        source="nvidia-ml-py 7-13 pynvml.py, with the words of NVML's nvmlErrorString",
        examples=(
            "pynvml.NVMLError: Unknown Error",
            "Error: nvmlInit failed: Unknown Error",
            "NVML error: Unknown Error",
            "NVML error: unknown error",
        ),
        not_examples=(
            "HTTP 520: Unknown Error",
            "GPU 0000:01:00.0: Unknown Error",
        ),
        level=Level.STRONG,
        masks=("cuda-init-driver-state", "no-gpu-visible"),
    ),
)
