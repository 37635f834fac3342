"""The address space of a process is limited (`ulimit -v`).

## Why it matters
torch maps gigabytes of libraries, and CUDA reserves address space of the size of all memory and all
GPUs together, without using it. Under `ulimit -v` this ends in `Cannot allocate memory` while
memory is free.

## What to do
Run `ulimit -v unlimited` in the job script; to bound memory use a cgroup (`--mem`).

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
        fatal_gib: below this torch does not even load its libraries.
    """

    fatal_gib: float = 8


@check(CONDITION)
def address_space_is_free(
    resources: Resources, live: TorchLive | Missing, limits: SpaceLimits
) -> Iterator[Finding]:
    """Judges RLIMIT_AS; a CUDA that starts under it makes it a warning."""
    limit = resources.limit_address_space
    if limit is None:
        yield ok(address_space="unlimited")
        return
    started = cuda_works(live)
    yield (fail if limit < limits.fatal_gib * GIB and not started else warn)(
        f"the address space of a process is limited to {gib(limit)} GiB, but torch and CUDA need "
        "it unlimited",
        effect="imports or CUDA end in `Cannot allocate memory` though memory is free",
        hint="run `ulimit -v unlimited` before the job starts",
        address_space_gib=gib(limit),
        cuda_started=started,
    )
