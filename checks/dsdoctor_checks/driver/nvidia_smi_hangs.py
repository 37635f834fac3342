"""`nvidia-smi` hangs.

## Why it matters
A call into the driver does not return: a GPU has fallen off the bus, its firmware does not answer,
or the driver takes very long to load because persistence is off. CUDA usually hangs at the same
place, and the job stops without an error message.

## What to do
Look for `Xid` in `dmesg`, then reset the GPU or reboot. If the driver is only slow, keep it loaded
with `nvidia-persistenced`.

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
def nvidia_smi_returns(smi: NvidiaSmi, live: TorchLive | Missing) -> Iterator[Finding]:
    """A hang is a failure, unless CUDA works: then the driver is only slow to load."""
    if not smi.timed_out:
        return
    say = warn if cuda_works(live) else fail
    yield say(
        f"`{smi.path or 'nvidia-smi'}` {smi.error or 'did not finish in time'},"
        " but it should answer within seconds",
        effect="the driver loads slowly each time"
        if cuda_works(live)
        else "CUDA is likely to hang at startup as well",
        hint="enable persistence with `nvidia-persistenced`"
        if cuda_works(live)
        else "look for `Xid` in `dmesg`, then reset the GPU or reboot",
        path=smi.path,
        error=smi.error,
    )
