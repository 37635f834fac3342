"""A copy between two GPUs fails, or brings other data than were sent.

## Why it matters
Collectives move gradients between GPUs by such copies. With an IOMMU that translates, or with
access control (ACS) on the PCIe switches, peer-to-peer copies can hang or arrive as garbage,
without an error anywhere: the loss just goes astray.

## What to do
Turn ACS off on the switches and the IOMMU to pass-through (`iommu=pt`), or forbid direct copies with
`NCCL_P2P_DISABLE=1` until that is done.

## References
- NCCL docs: troubleshooting, PCI access control services
- https://github.com/pytorch/pytorch/issues/84803
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DeepTrial, Finding, Scope, check, fail, ok, skip, warn

CONDITION = Condition(
    "p2p-copy-corrupt",
    id="DSD740",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("nccl-timeout-watchdog",),
)
_SHOWN = 3


@check(CONDITION)
def copies_arrive(trial: DeepTrial) -> Iterator[Finding]:
    """The outcome of each ordered pair of GPUs."""
    if not trial.pairs and trial.pairs_error is None:
        yield skip("fewer than two GPUs were tried")
        return
    bad = [pair for pair in trial.pairs if not pair.ok]
    if bad:
        shown = "; ".join(f"{pair.a} to {pair.b}: {pair.error}" for pair in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        yield fail(
            f"{len(bad)} of {len(trial.pairs)} copies between GPUs go wrong ({shown}{more})",
            effect="collectives hang, or gradients are garbage without an error",
            hint="set `NCCL_P2P_DISABLE=1`; turn off ACS and set `iommu=pt` to have P2P back",
            pairs=[[pair.a, pair.b, pair.error] for pair in bad],
            peer=[pair.peer for pair in bad],
        )
    elif trial.pairs_error is not None:
        yield warn(
            f"copies between GPUs could not be tried to their end: {trial.pairs_error}",
            effect="whether GPUs reach each other is not known",
            hint="run `check --deep` again with a longer `--timeout`",
            tried=len(trial.pairs),
        )
    else:
        yield ok(pairs=len(trial.pairs), peer=sum(pair.peer is True for pair in trial.pairs))
