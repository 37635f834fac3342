"""The kernel lets programs reserve less memory than is free.

## Why it matters
With `vm.overcommit_memory=2`, the kernel counts what programs reserve, not what they use, and refuses
more than a limit: swap plus a share of the memory, by default half of it. A rank that has loaded a model
and starts a data loader, a compiler or `nvidia-smi` reserves its memory a second time for a moment
(`fork`), and gets `Cannot allocate memory` while most of the memory is free.

## What to do
Set `vm.overcommit_memory` to 0 or 1, raise `vm.overcommit_ratio`, or add swap.

## References
- https://docs.kernel.org/mm/overcommit-accounting.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, Limits, MemoryDetail, Resources, Scope, check, ok, warn
from dsdoctor_checks._util import gib

CONDITION = Condition(
    "commit-limit-low",
    id="DSD1407",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("host-oom-killed",),
)


class CommitLimits(Limits, frozen=True, kw_only=True):
    """How much of the available memory programs must be able to reserve.

    Attributes:
        share: of the available memory.
    """

    share: float = 0.75


@check(CONDITION)
def memory_can_be_reserved(
    memory: MemoryDetail, resources: Resources, limits: CommitLimits
) -> Iterator[Finding]:
    """Compares what may still be reserved with what is available; only if the kernel counts."""
    if memory.commit_left_bytes is None:
        yield ok(counted=False)
        return
    left, free = max(0, memory.commit_left_bytes), resources.memory_available_bytes
    if left >= limits.share * free:
        yield ok(counted=True, left_gib=gib(left))
        return
    yield warn(
        f"programs may reserve {gib(left)} GiB more (`vm.overcommit_memory=2`), but {gib(free)} GiB are"
        " available",
        effect="starting a process or allocating memory fails with `Cannot allocate memory` while memory"
        " is free",
        hint="run `sysctl -w vm.overcommit_memory=0` as root, or raise `vm.overcommit_ratio`",
        left_gib=gib(left),
        available_gib=gib(free),
    )
