"""A copy between two GPUs fails or corrupts data.

## Why it matters
Collectives move gradients between GPUs with such copies. If the IOMMU translates addresses, or PCIe
switches enforce access control (ACS), peer-to-peer copies can hang or deliver corrupt data without an
error. The loss then diverges for no visible reason.

## What to do
Disable ACS on the switches and boot with `iommu=pt`. Until then, disable direct copies
with `NCCL_P2P_DISABLE=1`.

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
    """Judges the trial copy of each ordered pair of GPUs."""
    if not trial.pairs and trial.pairs_error is None:
        yield skip("fewer than two GPUs were tested")
        return
    bad = [pair for pair in trial.pairs if not pair.ok]
    if bad:
        shown = "; ".join(f"{pair.a} to {pair.b}: {pair.error}" for pair in bad[:_SHOWN])
        more = f"; and {len(bad) - _SHOWN} more" if len(bad) > _SHOWN else ""
        yield fail(
            f"{len(bad)} of {len(trial.pairs)} copies between GPUs fail ({shown}{more})",
            effect="collectives hang, or gradients are silently corrupted",
            hint="set `NCCL_P2P_DISABLE=1`; to use P2P again, disable ACS and boot with `iommu=pt`",
            pairs=[[pair.a, pair.b, pair.error] for pair in bad],
            peer=[pair.peer for pair in bad],
        )
    elif trial.pairs_error is not None:
        yield warn(
            f"the test of copies between GPUs did not finish: {trial.pairs_error}",
            effect="copies between the remaining GPUs are untested",
            hint="run `dsdoctor check --deep` again with a longer `--timeout`",
            tried=len(trial.pairs),
        )
    else:
        yield ok(pairs=len(trial.pairs), peer=sum(pair.peer is True for pair in trial.pairs))
