"""`nvidia-smi` is installed but does not return a usable report.

## Why it matters
`nvidia-smi` needs only a working driver. If it exits with an error or prints anything but a report,
the driver does not work, or a different program has its name.

## What to do
Run it by hand and follow its message. If the tool and the driver come from different packages,
reinstall the driver.

## References
- `nvidia-smi --help`, section "RETURN VALUE"
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    NvidiaSmi,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    warn,
)
from dsdoctor_checks._util import cuda_works, gpu_expected

CONDITION = Condition(
    "nvidia-smi-broken",
    id="DSD111",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "driver-missing",
        "driver-library-mismatch",
        "container-lost-gpu",
        "nvml-unusable",
        "gpu-lost",
        "gpu-reset-required",
        "wsl-driver-unavailable",
    ),
)
#: With exit status 6, where the driver works and lists no GPU (nvidia-smi(1), return value).
_NO_DEVICES = "No devices were found"


@check(CONDITION)
def nvidia_smi_answers(
    smi: NvidiaSmi,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Judges exit status and output; a failure only if nothing else shows a working GPU."""
    broken = smi.error is not None or smi.returncode not in (0, None)
    if smi.path is None or smi.timed_out or not broken:
        return
    read = isinstance(gpus, Gpus) and bool(gpus.gpus)
    if isinstance(gpus, Gpus) and gpus.count == 0 and _NO_DEVICES in (smi.error or ""):
        return  # NVML agrees with it
    needed = gpu_expected(run, kernel, gpus) and not read and not cuda_works(live)
    say = fail if needed else warn
    outcome = f"exits with status {smi.returncode}" if smi.returncode else "prints no report"
    words = f": {smi.error.strip().rstrip('.')}" if smi.error else ""
    yield say(
        f"`{smi.path}` {outcome}{words}",
        effect="CUDA is unlikely to start" if needed else "tools that call it do not work",
        hint="look for `NVRM` in `dmesg`; in a container, check which GPUs it was started with"
        if _NO_DEVICES in (smi.error or "")
        else f"run `{smi.path}` by hand and follow its message, or reinstall the driver",
        path=smi.path,
        returncode=smi.returncode,
        error=smi.error,
    )
