"""torch imports, but CUDA does not initialise, hangs, or kills the process.

## Why it matters
The job dies or hangs at its first CUDA call. `torch.cuda.is_available()` may still be true:
DeepSpeed makes it ask NVML only.

## What to do
Run `python -c 'import torch; torch.cuda.init()'` by hand, and read the error together with
`dmesg`.

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
#: Errors that other conditions name: driver, fabric, driver state, exclusive mode, no kernel image.
_NAMED = frozenset({3, 34, 35, 46, 209, 802, 803, 804, 805, 999})


@check(CONDITION)
def cuda_initialises(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """A failure that no other condition explains, of CUDA as a whole or of one device."""
    if not live.imported.ok:
        yield skip("torch does not import")
        return
    if live.cuda_ok is True:
        for device in live.devices:
            if device.ok or device.error_code in _NAMED:
                continue
            yield fail(
                f"CUDA device {device.index} ({device.name}) cannot be used:"
                f" {(device.error or 'no reason given').strip().splitlines()[0]}",
                effect="the rank on that device dies at start",
                hint="look for `Xid` in `dmesg`, or leave the device out with"
                " `CUDA_VISIBLE_DEVICES`",
                device=device.index,
                error=device.error,
                code=device.error_code,
            )
        return
    failed = live.cuda_ok is False or (live.died is not None and "cuda" in live.last_step.lower())
    if not failed or live.cuda_error_code in _NAMED:
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip("no GPU is here or asked for")
        return
    lines = (live.cuda_error or live.died or "no reason given").strip().splitlines()
    code = f" (error {live.cuda_error_code})" if live.cuda_error_code is not None else ""
    yield fail(
        f"torch imports, but CUDA does not initialise{code}: {lines[0].rstrip('.')}",
        effect="the job dies or hangs at its first CUDA call",
        hint="run `python -c 'import torch; torch.cuda.init()'` and look at `dmesg` beside it",
        code=live.cuda_error_code,
        error=live.cuda_error,
        died=live.died,
        last_step=live.last_step,
    )
