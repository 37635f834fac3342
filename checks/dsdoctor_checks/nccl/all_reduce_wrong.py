"""An all-reduce among ranks of this host fails, hangs or gives wrong sums.

## Why it matters
It is the first thing that every distributed job does. If two ranks cannot add up known figures, the
job hangs in its first step until the watchdog ends it, half an hour later.

## What to do
See where it stands with `NCCL_DEBUG=INFO`; then try without one transport after the other:
`NCCL_P2P_DISABLE=1`, `NCCL_SHM_DISABLE=1`, `NCCL_IB_DISABLE=1`. With gloo look at the interface
(`GLOO_SOCKET_IFNAME`) and the name of this host in /etc/hosts.

## References
- `dsdoctor check --deep`: NCCL on the chosen GPUs, gloo with two ranks where there are fewer
- NCCL docs: troubleshooting
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DeepTrial, Finding, Scope, check, fail, ok, skip

CONDITION = Condition(
    "all-reduce-wrong",
    id="DSD840",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-timeout-watchdog",),
)
_HINTS = {
    "nccl": "see which transport it is: `NCCL_DEBUG=INFO`, then `NCCL_P2P_DISABLE=1`",
    "gloo": "look whether this host's name resolves, and set `GLOO_SOCKET_IFNAME=lo`",
}


@check(CONDITION)
def sums_are_right(trial: DeepTrial) -> Iterator[Finding]:
    """The outcome of the all-reduce."""
    tried = trial.collective
    if tried is None or tried.ok is None:
        yield skip("no all-reduce was tried")
        return
    if tried.ok:
        yield ok(backend=tried.backend, ranks=tried.ranks)
        return
    who = "" if tried.rank is None else f" on rank {tried.rank}"
    yield fail(
        f"an all-reduce of {tried.ranks} ranks over {tried.backend} fails{who}: {tried.error}",
        effect="a distributed job dies or hangs in its first step",
        hint=_HINTS.get(tried.backend, _HINTS["gloo"]),
        backend=tried.backend,
        ranks=tried.ranks,
        rank=tried.rank,
        hung=tried.hung,
        error_text=tried.error or "",
    )
