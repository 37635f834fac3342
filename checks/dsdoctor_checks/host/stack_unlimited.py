"""The stack limit is `unlimited`, which slows down or breaks older NCCL releases.

## Why it matters
NCCL older than 2.28 sizes the stacks of its threads by the limit. `ulimit -s unlimited`, common on
clusters that run Fortran programs, makes them huge.

## What to do
Run `ulimit -s 8192` in the job script.

## References
- NCCL docs: troubleshooting.rst
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    OsInfo,
    Resources,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

from ._util import ranks

CONDITION = Condition("stack-unlimited", id="DSD1004", scope=Scope.JOB, since="0.1")
#: First NCCL that is not affected (NCCL docs, troubleshooting.rst of 2.30).
CURED = "2.28"


@check(CONDITION)
def stack_is_limited(
    resources: Resources,
    os: OsInfo,
    torch: TorchBuild,
    live: TorchLive | Missing,
    run: RunNeeds,
    gpus: Gpus | Missing,
    env: Environment | Missing,
) -> Iterator[Finding]:
    """Warns if several ranks would use an affected NCCL."""
    loaded = live.nccl if isinstance(live, TorchLive) else None
    nccl = loaded or torch.nccl
    if os.system != "Linux" or nccl is None:
        yield skip("torch has no NCCL here, or its version is unknown")
        return
    if resources.limit_stack is not None or at_least(nccl, CURED):
        yield ok(stack=resources.limit_stack, nccl=nccl)
        return
    if ranks(run, gpus, env) == 1:
        yield skip("one rank does not use NCCL", nccl=nccl)
        return
    yield warn(
        f"the stack limit is unlimited, but NCCL {nccl} is older than {CURED} and sizes its "
        "thread stacks by it",
        effect="NCCL starts slowly or fails with an allocation error",
        hint="run `ulimit -s 8192` before the job starts",
        stack="unlimited",
        nccl=nccl,
        cured=CURED,
    )
