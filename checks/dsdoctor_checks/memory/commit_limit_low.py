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

from dsdoctor.api import (
    Condition,
    Finding,
    Limits,
    MemoryDetail,
    NotStated,
    Resources,
    Scope,
    check,
    ok,
    warn,
)
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


_HINT = "run `sysctl -w vm.overcommit_memory=0` as root, or raise `vm.overcommit_ratio`"


@check(CONDITION)
def memory_can_be_reserved(
    memory: MemoryDetail, resources: Resources, limits: CommitLimits
) -> Iterator[Finding]:
    """Compares what may still be reserved with what is available; only if the kernel counts."""
    try:
        still = memory.commit_left_bytes
    except NotStated:  # a paste does not say whether the job was running
        yield _in_all(memory, resources, limits)
        return
    if still is None:
        yield ok(counted=False)
        return
    left, free = max(0, still), resources.memory_available_bytes
    if left >= limits.share * free:
        yield ok(counted=True, left_gib=gib(left))
        return
    yield warn(
        f"programs may reserve {gib(left)} GiB more (`vm.overcommit_memory=2`), but {gib(free)} GiB are"
        " available",
        effect="starting a process or allocating memory fails with `Cannot allocate memory` while memory"
        " is free",
        hint=_HINT,
        left_gib=gib(left),
        available_gib=gib(free),
    )


def _in_all(memory: MemoryDetail, resources: Resources, limits: CommitLimits) -> Finding:
    """Compares what all programs may reserve with what the machine has."""
    limit, total = memory.commit_limit_bytes, resources.memory_total_bytes
    if limit is None or limit >= limits.share * total:
        return ok(counted=limit is not None)
    return warn(
        f"programs may reserve {gib(limit)} GiB in total (`vm.overcommit_memory=2`), but the machine has"
        f" {gib(total)} GiB",
        effect="starting a process or allocating memory fails with `Cannot allocate memory` while memory"
        " is free",
        hint=_HINT,
        limit_gib=gib(limit),
        total_gib=gib(total),
    )
