"""The address space of a process is limited (`ulimit -v`).

## Why it matters
torch maps gigabytes of libraries. CUDA reserves as much address space as the host and all GPUs have
memory, without using it. With `ulimit -v` this fails with `Cannot allocate memory` although memory is
free.

## What to do
Run `ulimit -v unlimited` in the job script. To limit memory, use a cgroup (`--mem`).

## References
- https://man7.org/linux/man-pages/man2/getrlimit.2.html (RLIMIT_AS)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Limits,
    Missing,
    Resources,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import GIB, cuda_works, gib

CONDITION = Condition("address-space-limited", id="DSD1005", scope=Scope.JOB, since="0.1")


class SpaceLimits(Limits, frozen=True, kw_only=True):
    """Address space of one process.

    Attributes:
        fatal_gib: below this torch cannot load its libraries.
    """

    fatal_gib: float = 8


@check(CONDITION)
def address_space_is_free(
    resources: Resources, live: TorchLive | Missing, limits: SpaceLimits
) -> Iterator[Finding]:
    """Judges RLIMIT_AS; only a warning if CUDA (or torch, without CUDA) starts under it."""
    limit = resources.limit_address_space
    if limit is None:
        yield ok(address_space="unlimited")
        return
    started = cuda_works(live)
    imported = isinstance(live, TorchLive) and live.imported.ok and live.cuda_ok is None
    yield (fail if limit < limits.fatal_gib * GIB and not (started or imported) else warn)(
        f"the address space of a process is limited to {gib(limit)} GiB, but torch and CUDA need "
        "it unlimited",
        effect="imports or CUDA fail with `Cannot allocate memory` although memory is free",
        hint="remove the `ulimit -v` that set it, or run `ulimit -v unlimited` before the job starts",
        address_space_gib=gib(limit),
        cuda_started=started,
    )
