"""Locked memory is limited, but this job will lock memory.

## Why it matters
InfiniBand registers buffers by locking them, and DeepSpeed's native pin_memory does so too. Under a
low `ulimit -l` NCCL says `Call to ibv_reg_mr failed` and offload cannot pin its buffers.

## What to do
Set memlock to unlimited: `--ulimit memlock=-1` for a container, `LimitMEMLOCK=infinity` for slurmd,
/etc/security/limits.conf for log-ins.

## References
- NCCL docs: troubleshooting.rst
- DeepSpeed utils/pin_memory.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Limits,
    Resources,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)

CONDITION = Condition(
    "memlock-low", id="DSD801", scope=Scope.NODE, since="0.1", fixes=("raise-limits",)
)
MIB = 1 << 20


class MemlockLimits(Limits, frozen=True, kw_only=True):
    """Memory that one process may lock.

    Attributes:
        min_mib: below this InfiniBand buffers are likely not to fit.
        fatal_mib: up to this they certainly do not.
    """

    min_mib: float = 65536
    fatal_mib: float = 64


@check(CONDITION)
def memory_can_be_locked(
    resources: Resources, env: Environment, limits: MemlockLimits
) -> Iterator[Finding]:
    """Judges RLIMIT_MEMLOCK where the environment says that memory will be locked."""
    native = (env.get("DS_PIN_MEMORY_BACKEND") or "").lower() == "native"
    verbs = env.get("NCCL_IB_HCA") is not None and env.get("NCCL_IB_DISABLE") != "1"
    if not native and not verbs:
        yield skip("nothing says that this job uses InfiniBand or DeepSpeed's native pin_memory")
        return
    limit = resources.limit_memlock
    if limit is None or limit >= limits.min_mib * MIB:
        yield ok(memlock_mib="unlimited" if limit is None else limit // MIB)
        return
    reason = "`DS_PIN_MEMORY_BACKEND=native`" if native else "`NCCL_IB_HCA`"
    yield (fail if limit <= limits.fatal_mib * MIB else warn)(
        f"a process may lock {limit / MIB:g} MiB, but {reason} makes the job lock its buffers, "
        "which needs the limit to be unlimited",
        effect="registration of memory fails (`Call to ibv_reg_mr failed`, or `mlock`)",
        hint="start the container with `--ulimit memlock=-1`, or set memlock to unlimited in "
        "/etc/security/limits.conf or the service of the scheduler",
        memlock_mib=limit / MIB,
        reason=reason.strip("`"),
    )
