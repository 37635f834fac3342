"""`nvidia-smi` does not end.

## Why it matters
A call into the driver hangs: a GPU has fallen off the bus, the firmware does not answer, or the
driver takes very long to start because nothing keeps it loaded. CUDA usually hangs at the same
place, and a job then stands still without a word.

## What to do
Look for `Xid` in `dmesg`, reset the GPU or restart the machine. If it is merely slow, keep the
driver loaded with `nvidia-persistenced`.

## References
- https://docs.nvidia.com/deploy/xid-errors/
- https://docs.nvidia.com/deploy/driver-persistence/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    NvidiaSmi,
    Scope,
    TorchLive,
    check,
    fail,
    warn,
)
from dsdoctor_checks._util import cuda_works

CONDITION = Condition("nvidia-smi-hangs", id="DSD106", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def nvidia_smi_ends(smi: NvidiaSmi, live: TorchLive | Missing) -> Iterator[Finding]:
    """A hang is a failure, unless CUDA works: then the driver is slow to wake."""
    if not smi.timed_out:
        return
    say = warn if cuda_works(live) else fail
    yield say(
        f"`{smi.path or 'nvidia-smi'}` {smi.error or 'did not end in time'},"
        " but it should answer within seconds",
        effect="the driver starts slowly each time"
        if cuda_works(live)
        else "CUDA is likely to hang at start as well",
        hint="enable persistence with `nvidia-persistenced`"
        if cuda_works(live)
        else "look for `Xid` in `dmesg`, then reset the GPU or restart the machine",
        path=smi.path,
        error=smi.error,
    )
