"""torch imports, but CUDA initialization fails, hangs or crashes.

## Why it matters
The job exits or hangs at its first CUDA call. `torch.cuda.is_available()` may still be true, because
DeepSpeed makes it ask NVML only.

## What to do
Run `python -c 'import torch; torch.cuda.init()'` and read the error together with `dmesg`.

## References
- DeepSpeed `__init__.py` (`PYTORCH_NVML_BASED_CUDA_CHECK`)
- driver_types.h, `cudaError`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    skip,
)
from dsdoctor_checks._util import gpu_expected

CONDITION = Condition(
    "torch-cuda-init-failed",
    id="DSD306",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "driver-missing",
        "driver-too-old",
        "driver-library-mismatch",
        "cuda-init-driver-state",
        "fabric-manager-not-running",
        "container-lost-gpu",
        "no-gpu-visible",
        "visible-devices-invalid",
        "gpu-busy-exclusive-mode",
        "gpu-arch-unsupported",
        "gpu-busy",
        "mig-without-instance",
    ),
)
#: Errors of other conditions: driver, fabric, driver state, exclusive mode, no kernel image.
_NAMED = frozenset({3, 34, 35, 46, 209, 802, 803, 804, 805, 999})


@check(CONDITION)
def cuda_initializes(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Judges failures of CUDA, or of one device, that no other condition explains."""
    if not live.imported.ok:
        yield skip("torch does not import")
        return
    if live.cuda_ok is True:
        for device in live.devices:
            if device.ok or device.error_code in _NAMED:
                continue
            yield fail(
                f"CUDA device {device.index} ({device.name}) is not usable:"
                f" {(device.error or 'no reason given').strip().splitlines()[0]}",
                effect="the rank on that device exits at startup",
                hint="look for `Xid` in `dmesg`, or exclude the device with `CUDA_VISIBLE_DEVICES`",
                device=device.index,
                error=device.error,
                code=device.error_code,
            )
        return
    failed = live.cuda_ok is False or (live.died is not None and "cuda" in live.last_step.lower())
    if not failed or live.cuda_error_code in _NAMED:
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip("no GPU is present or requested")
        return
    lines = (live.cuda_error or live.died or "no reason given").strip().splitlines()
    code = f" (error {live.cuda_error_code})" if live.cuda_error_code is not None else ""
    yield fail(
        f"torch imports, but CUDA does not initialize{code}: {lines[0].rstrip('.')}",
        effect="the job exits or hangs at its first CUDA call",
        hint="run `python -c 'import torch; torch.cuda.init()'` and check `dmesg` for its cause",
        code=live.cuda_error_code,
        error=live.cuda_error,
        died=live.died,
        last_step=live.last_step,
    )
