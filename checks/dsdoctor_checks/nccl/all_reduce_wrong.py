"""An all-reduce among ranks of this node fails, hangs or returns wrong sums.

## Why it matters
An all-reduce is the first thing that every distributed job does. If two ranks cannot add known numbers,
the job hangs in its first step until the watchdog aborts it, half an hour later.

## What to do
Find the transport with `NCCL_DEBUG=INFO`, then disable one at a time: `NCCL_P2P_DISABLE=1`,
`NCCL_SHM_DISABLE=1`, `NCCL_IB_DISABLE=1`. With gloo, check the interface (`GLOO_SOCKET_IFNAME`) and this
node's host name in /etc/hosts.

## References
- `dsdoctor check --deep`: NCCL on the chosen GPUs; with fewer than two, gloo with two ranks
- NCCL docs: troubleshooting
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepTrial,
    Finding,
    Level,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition(
    "all-reduce-wrong",
    id="DSD840",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-timeout-watchdog",),
)
_HINTS = {
    "nccl": "find the transport with `NCCL_DEBUG=INFO`, then try `NCCL_P2P_DISABLE=1`",
    "gloo": "check that this node's host name resolves, and set `GLOO_SOCKET_IFNAME=lo`",
}
HINT = "find the transport with `NCCL_DEBUG=INFO`, then disable one at a time: `NCCL_P2P_DISABLE=1`, `NCCL_SHM_DISABLE=1`, `NCCL_IB_DISABLE=1`"

SIGNATURES = (
    Signature(
        pattern=r"# Out of bounds values : (?P<count>[1-9]\d{0,9}) FAILED",
        source="nccl-tests 1.0-2.17 src/common.cu, rccl-tests",
        examples=("# Out of bounds values : 2 FAILED",),
        not_examples=("# Out of bounds values : 0 OK",),
        level=Level.CERTAIN,
        message="A test of the collectives found wrong results in {count} of its measurements",
        hint="with several nodes, run it on each alone; then disable one transport at a time: `NCCL_P2P_DISABLE=1`, `NCCL_SHM_DISABLE=1`, `NCCL_IB_DISABLE=1`; wrong sums between GPUs of one node are often the IOMMU or ACS",
    ),
)


@check(CONDITION)
def sums_are_right(trial: DeepTrial) -> Iterator[Finding]:
    """Judges the trial all-reduce."""
    tried = trial.collective
    if tried is None or tried.ok is None:
        yield skip("no all-reduce was run")
        return
    if tried.ok:
        yield ok(backend=tried.backend, ranks=tried.ranks)
        return
    who = "" if tried.rank is None else f" on rank {tried.rank}"
    yield fail(
        f"an all-reduce of {tried.ranks} ranks over {tried.backend} fails{who}: {tried.error}",
        effect="a distributed job fails or hangs in its first step",
        hint=_HINTS.get(tried.backend, _HINTS["gloo"]),
        backend=tried.backend,
        ranks=tried.ranks,
        rank=tried.rank,
        hung=tried.hung,
        error_text=tried.error or "",
    )
