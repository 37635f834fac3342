"""This DeepSpeed is too old for this torch.

## Why it matters
DeepSpeed uses parts of torch that are not public, and those move. Each torch release named here
broke the DeepSpeed releases before it, at import or in the build of ops.

## What to do
Upgrade DeepSpeed to the release that is named or to a newer one.

## References
- https://github.com/deepspeedai/DeepSpeed/pull/2863, 5346, 5654, 8238
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    Finding,
    Missing,
    Scope,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import at_least

from ._tables import DEEPSPEED_TORCH

CONDITION = Condition(
    "deepspeed-torch-incompatible",
    id="DSD903",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
)


@check(CONDITION)
def deepspeed_suits_torch(
    deepspeed: DeepSpeedInstall, torch: TorchBuild, live: DeepSpeedLive | Missing
) -> Iterator[Finding]:
    """Looks the pair up; an import that worked outranks the table."""
    if deepspeed.version is None or torch.version is None:
        yield skip("torch or deepspeed is not installed")
        return
    works = isinstance(live, DeepSpeedLive) and live.imported.ok
    for row in DEEPSPEED_TORCH:
        if not at_least(torch.version, row.since) or at_least(deepspeed.version, row.fixed):
            continue
        if row.at_import and works:
            continue
        yield (fail if row.at_import else warn)(
            f"deepspeed {deepspeed.version} is installed with torch {torch.version}, but torch "
            f"{row.since} and newer need deepspeed {row.fixed} or newer",
            effect=row.effect,
            hint=f"run `pip install -U 'deepspeed>={row.fixed}'`",
            deepspeed=deepspeed.version,
            torch=torch.version,
            torch_since=row.since,
            needed=row.fixed,
            source=row.source,
        )
        return
    yield ok(deepspeed=deepspeed.version, torch=torch.version)
