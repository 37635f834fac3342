"""DeepSpeed is installed, but importing it fails.

## Why it matters
Every rank of the job imports it. The import was tried in the patient's interpreter, after torch, as
a job does it; what it said there it will say in the job.

## What to do
Mend what the error names. When it names a module, that package is missing or of a version that this
DeepSpeed does not know.

## References
- DeepSpeed deepspeed/__init__.py
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
    TorchLive,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition(
    "deepspeed-import-broken",
    id="DSD902",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
    narrower=(
        "deepspeed-torch-incompatible",
        "module-shadowed-by-cwd",
        "numpy-abi-2",
    ),
)


@check(CONDITION)
def deepspeed_imports(
    live: DeepSpeedLive, torch: TorchLive | Missing, deepspeed: DeepSpeedInstall | Missing
) -> Iterator[Finding]:
    """Reports how the import went."""
    outcome = live.imported
    if outcome.ok:
        yield ok(seconds=outcome.seconds)
        return
    if isinstance(torch, TorchLive) and not torch.imported.ok:
        yield skip("torch itself could not be imported, so deepspeed cannot be")
        return
    if isinstance(deepspeed, DeepSpeedInstall) and deepspeed.version is None:
        yield skip("deepspeed is not installed")
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    words = (outcome.message or "").strip().splitlines()
    said = words[0] if words else "no message"
    if outcome.error_type == "hang":
        what = f"did not end: {said}"
    elif outcome.error_type == "signal":
        what = f"was ended by {said}"
    else:
        what = f"ended in `{outcome.error_type}: {said}`"
    yield fail(
        f"`import deepspeed` {what}",
        effect="every rank ends the same way at its start",
        hint="mend what the error names, then run `python -c 'import deepspeed'`",
        version=version,
        error_type=outcome.error_type,
        error=outcome.message,
        traceback=outcome.traceback,
        signal=outcome.signal,
        seconds=outcome.seconds,
    )
