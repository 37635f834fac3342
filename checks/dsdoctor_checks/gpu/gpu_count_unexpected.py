"""Fewer GPUs are present than expected.

## Why it matters
A GPU that is not enumerated at all goes unnoticed: nothing reports an error for it. Causes are a
fault at boot, an unplugged power cable, or a device that the container did not receive.

## What to do
Compare `lspci -d 10de:` with `nvidia-smi -L`. In a container or a job, request all GPUs.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetCount_v2
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Gpus, RunNeeds, Scope, check, fail, ok, skip

CONDITION = Condition("gpu-count-unexpected", id="DSD616", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def gpus_are_complete(gpus: Gpus, run: RunNeeds) -> Iterator[Finding]:
    """Compares the driver's count with `--expect-gpus`."""
    count = len(gpus.gpus) if gpus.count is None else gpus.count
    expected = run.expect_gpus
    if expected is None:
        yield skip("no expected number of GPUs was passed (`--expect-gpus N`)", count=count)
    elif count < expected:
        yield fail(
            f"the driver lists {count} {'GPU' if count == 1 else 'GPUs'}, but {expected} are "
            "expected",
            effect=f"a job on {expected} GPUs fails with `invalid device ordinal`",
            hint="compare `lspci -d 10de:` with `nvidia-smi -L`, and look for `NVRM` in `dmesg`",
            count=count,
            expected=expected,
        )
    else:
        yield ok(count=count, expected=expected)
