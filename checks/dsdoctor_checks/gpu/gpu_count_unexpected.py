"""There are fewer GPUs than are expected.

## Why it matters
A GPU that is not enumerated at all, by a fault at boot, a missing power cable or a device that
was not given to the container, is noticed only by its absence.

## What to do
Compare `lspci -d 10de:` with `nvidia-smi -L`; ask the scheduler or the container for all GPUs.

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
        yield skip("no number of GPUs is expected (`--expect-gpus N`)", count=count)
    elif count < expected:
        yield fail(
            f"the driver lists {count} {'GPU' if count == 1 else 'GPUs'}, but {expected} are "
            "expected",
            effect=f"a job for {expected} GPUs ends in `invalid device ordinal`",
            hint="compare `lspci -d 10de:` with `nvidia-smi -L`, and look for `NVRM` in `dmesg`",
            count=count,
            expected=expected,
        )
    else:
        yield ok(count=count, expected=expected)
