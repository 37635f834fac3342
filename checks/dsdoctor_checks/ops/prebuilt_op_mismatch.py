"""Ops were pre-built for another torch or CUDA version, or where no GPU was visible.

## Why it matters
DeepSpeed compares the torch and CUDA versions that its pre-built ops were compiled for with the
installed ones, and refuses to load a mismatched op: `PyTorch version mismatch!`. This happens when torch
is upgraded and DeepSpeed is not rebuilt.

Since 0.14.1, DeepSpeed also records the accelerator that it saw during the build. If no GPU was visible
(on a login node, or in an image build), it records the CPU. On a machine with GPUs, DeepSpeed then
silently ignores these ops and compiles each of them when it is first needed, which takes minutes and
needs a CUDA toolkit.

## What to do
Rebuild DeepSpeed in this environment, or install it without pre-built ops. Where no GPU is visible, set
`DS_ACCELERATOR=cuda` for the build.

## References
- DeepSpeed op_builder/builder.py: `validate_torch_op_version`, `OpBuilder.load`
- https://github.com/deepspeedai/DeepSpeed/pull/5206
- https://github.com/deepspeedai/DeepSpeed/issues/7011
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    Finding,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import listed, pair

from ._util import needed_ops

CONDITION = Condition(
    "prebuilt-op-mismatch",
    id="DSD407",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
)

REBUILD = "install --force-reinstall --no-cache-dir --no-deps --no-build-isolation deepspeed"


@check(CONDITION)
def ops_match_torch(
    deepspeed: DeepSpeedInstall,
    torch: TorchBuild,
    run: RunNeeds,
    live: DeepSpeedLive | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
) -> Iterator[Finding]:
    """Compares accelerator, major and minor versions, as DeepSpeed does when it loads an op."""
    if not deepspeed.prebuilt:
        yield skip("no op is pre-built")
        return
    rebuild = pip(patient, packages, REBUILD)
    if (ignored := _ignored(deepspeed, live, rebuild)) is not None:
        yield ignored
        return
    wrong: list[str] = []
    built, now = pair(deepspeed.built_for_torch), pair(torch.version)
    if built and now and built != now:
        wrong.append(f"torch {deepspeed.built_for_torch}, but torch {torch.version} is installed")
    # DeepSpeed compares CUDA only if CUDA is available; ops built without it record 0.0.
    built, now = pair(deepspeed.built_for_cuda), pair(torch.cuda)
    if built and now and built not in (now, (0, 0)):
        wrong.append(f"CUDA {deepspeed.built_for_cuda}, but torch has CUDA {torch.cuda}")
    evidence: dict[str, Any] = {
        "ops": list(deepspeed.prebuilt),
        "built_for_torch": deepspeed.built_for_torch,
        "torch": torch.version,
        "built_for_cuda": deepspeed.built_for_cuda,
        "cuda": torch.cuda,
    }
    if not wrong:
        yield ok(**evidence)
        return
    unused = run.config is not None and not set(needed_ops(run.config)) & set(deepspeed.prebuilt)
    yield (warn if unused else fail)(
        f"{_built(deepspeed)} for {'; and for '.join(wrong)}",
        effect="loading such an op fails with `PyTorch version mismatch!` or `CUDA version mismatch!`",
        hint=f"run `{rebuild}`",
        **evidence,
    )


def _built(deepspeed: DeepSpeedInstall) -> str:
    were = "was" if len(deepspeed.prebuilt) == 1 else "were"
    return f"{listed(f'`{op}`' for op in deepspeed.prebuilt)} {were} pre-built"


def _ignored(
    deepspeed: DeepSpeedInstall, live: DeepSpeedLive | Missing, rebuild: str
) -> Finding | None:
    """Ops that DeepSpeed does not look at, since it runs on another accelerator.

    That a login node has none is not a reason to rebuild them.
    """
    built = deepspeed.built_for_accelerator
    used = None if isinstance(live, Missing) else live.accelerator
    if built is None or used in (None, "cpu", built):
        return None
    return warn(
        f"{_built(deepspeed)} for the accelerator `{built}`, but DeepSpeed uses `{used}` here",
        effect="DeepSpeed ignores these ops and compiles each of them when it is first needed",
        hint=f"run `DS_ACCELERATOR={used} {rebuild}` with the `DS_BUILD_` variables of these ops",
        ops=list(deepspeed.prebuilt),
        built_for_accelerator=built,
        accelerator=used,
    )
