"""The installed transformers is incompatible with torch, DeepSpeed or accelerate.

## Why it matters
The Hugging Face Trainer rejects a DeepSpeed or accelerate that is too old. Releases before 5.0 also
replace `warmup_num_steps: "auto"` with 0, which DeepSpeed rejects since 0.19.3. With a torch that is too
old for it, transformers is imported, but has no models and no Trainer.

## What to do
Upgrade the package named in the finding.

## References
- transformers 5.23.0: dependency_versions_table.py, integrations/deepspeed.py
- DeepSpeed runtime/lr_schedules.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import at_least

from . import _transformers_deepspeed_incompatible_signatures
from ._tables import TRANSFORMERS_ACCELERATE, TRANSFORMERS_TORCH

CONDITION = Condition(
    "transformers-deepspeed-incompatible", id="DSD905", scope=Scope.USER_ENV, since="0.1"
)
#: What transformers 5 requires (dependency_versions_table.py of 5.23.0).
NEEDED = (("deepspeed", "0.9.3"), ("accelerate", "1.1.0"))
#: What earlier releases require, the newest first: dependency_versions_table.py of the wheels 4.6.0,
#: 4.10.0, 4.14.1, 4.18.0, 4.20.0, 4.28.1 and 4.31.0, read 2026-11-23. A release between two of them
#: requires at least as much as the older one.
NEEDED_BEFORE_5 = (
    ("4.31", "0.9.3"),
    ("4.28.1", "0.8.3"),
    ("4.20", "0.6.5"),
    ("4.18", "0.6.0"),
    ("4.14.1", "0.5.7"),
    ("4.10", "0.5.1"),
    ("4.6", "0.3.16"),
)


#: DeepSpeed rejects a warm-up of 0 steps (lr_schedules.py of the 0.19.3 sdist, 2026-11-22).
WARMUP_SINCE = "0.19.3"


def _automatic_warmup(run: RunNeeds) -> bool:
    scheduler = (run.config or {}).get("scheduler")
    params = scheduler.get("params") if isinstance(scheduler, dict) else None
    return isinstance(params, dict) and params.get("warmup_num_steps") == "auto"


def _needed_by(transformers: str, deepspeed: str) -> str | None:
    """The DeepSpeed that a transformers before 5.0 requires, if the installed one is older."""
    for release, needed in NEEDED_BEFORE_5:
        if at_least(transformers, release):
            return None if at_least(deepspeed, needed) else needed
    return None


@check(CONDITION)
def transformers_suits_deepspeed(
    packages: Packages, run: RunNeeds, patient: Patient | Missing
) -> Iterator[Finding]:
    """Compares the installed releases with what transformers requires."""
    transformers, deepspeed = packages.version("transformers"), packages.version("deepspeed")
    too_old = None if transformers is None else _too_old(transformers, packages, patient)
    if too_old is not None:
        yield too_old
        return
    if transformers is None or deepspeed is None:
        yield skip("transformers or deepspeed is not installed")
        return
    evidence = {"transformers": transformers, "deepspeed": deepspeed}
    if at_least(transformers, "5.0"):
        for name, needed in NEEDED:
            version = packages.version(name)
            if not at_least(version, needed):
                upgrade = pip(patient, packages, f"install -U '{name}>={needed}'")
                yield fail(
                    f"{name} {version} is installed, but transformers {transformers} needs "
                    f"{needed} or newer",
                    effect="the Trainer stops with an `ImportError` when DeepSpeed is enabled",
                    hint=f"run `{upgrade}`",
                    transformers=transformers,
                    package=name,
                    version=version,
                    needed=needed,
                )
    elif floor := _needed_by(transformers, deepspeed):
        upgrade = pip(patient, packages, f"install -U 'deepspeed>={floor}'")
        # a warning: with these releases, many use DeepSpeed without transformers' Trainer
        yield warn(
            f"deepspeed {deepspeed} is installed, but transformers {transformers} needs {floor} or"
            " newer",
            effect="the Trainer stops with an `ImportError` when DeepSpeed is enabled",
            hint=f"run `{upgrade}`",
            package="deepspeed",
            version=deepspeed,
            needed=floor,
            transformers=transformers,
        )
    elif at_least(deepspeed, WARMUP_SINCE) and _automatic_warmup(run):
        yield warn(
            f"transformers {transformers} replaces `warmup_num_steps: auto` with 0 by default, but"
            f" deepspeed {deepspeed} rejects 0",
            effect="creating the scheduler fails with `ValueError` unless `warmup_steps` is set",
            hint="set `warmup_steps` to 1 or more in the training arguments",
            **evidence,
        )
    else:
        yield ok("", **evidence)


def _too_old(transformers: str, packages: Packages, patient: Patient | Missing) -> Finding | None:
    """The finding for a torch or accelerate that is too old for transformers."""
    for name, rows, effect in (
        (
            "torch",
            TRANSFORMERS_TORCH,
            "transformers prints `Disabling PyTorch`, and its models and its Trainer are missing",
        ),
        (
            "accelerate",
            TRANSFORMERS_ACCELERATE,
            "the Trainer stops with `unwrap_model() got an unexpected keyword argument`",
        ),
    ):
        version = packages.version(name)
        needed = next((floor for since, floor in rows if at_least(transformers, since)), None)
        if version is None or needed is None or at_least(version, needed):
            continue
        upgrade = pip(patient, packages, f"install -U '{name}>={needed}'")
        return fail(
            f"{name} {version} is installed, but transformers {transformers} needs {needed} or newer",
            effect=effect,
            hint=f"run `{upgrade}`, or install an older transformers",
            transformers=transformers,
            package=name,
            version=version,
            needed=needed,
        )
    return None


HINT = "upgrade transformers, accelerate and deepspeed together: `python -m pip install -U transformers accelerate deepspeed`"

SIGNATURES = _transformers_deepspeed_incompatible_signatures.SIGNATURES
