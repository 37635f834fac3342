"""The installed transformers is incompatible with torch, DeepSpeed or accelerate.

## Why it matters
The Hugging Face Trainer rejects a DeepSpeed or accelerate that is too old. Releases before 5.0 also
replace `warmup_num_steps: "auto"` with 0, which DeepSpeed rejects since 0.19.3. With a torch that is too
old for it, transformers is imported, but has no models and no Trainer. The Trainer of transformers before
4.40 passes arguments that accelerate 1.0 removed. pip installs these pairs without a word, since
transformers requires torch and accelerate only as an extra.

## What to do
Install the release named in the finding.

## References
- transformers 5.23.0: dependency_versions_table.py, integrations/deepspeed.py
- DeepSpeed runtime/lr_schedules.py
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
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
from dsdoctor_checks._util import at_least, surely_at_least

from . import _transformers_deepspeed_incompatible_signatures
from ._tables import (
    TORCH_OF_WEIGHTS,
    TRAINER_PASSES_DISPATCH_BATCHES,
    TRAINER_RESUMES,
    TRANSFORMERS_ACCELERATE,
    accelerate_for,
    torch_floor,
    transformers_for,
)

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


#: `torch>=2.6; extra == "torch"`, as the metadata of transformers state it.
_STATED = re.compile(
    r"([\w.-]{1,60})\s{0,4}\(?[^;]{0,80}>=\s{0,4}(\d[\d.]{0,20})[^;]{0,80};"
    r"\s{0,4}extra == ['\"]torch['\"]"
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
    packages: Packages,
    run: RunNeeds,
    patient: Patient | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Compares the installed releases with what transformers requires."""
    transformers, deepspeed = packages.version("transformers"), packages.version("deepspeed")
    unsuited = None if transformers is None else _unsuited(transformers, packages, patient, run)
    if unsuited is not None:
        yield unsuited
        return
    if transformers is not None and _resumes(run, command):
        lost = _cannot_resume(transformers, packages, patient)
        if lost is not None:
            yield lost
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


def _unsuited(
    transformers: str, packages: Packages, patient: Patient | Missing, run: RunNeeds
) -> Finding | None:
    """The finding for a torch or accelerate that does not suit transformers."""
    torch = packages.version("torch")
    needed = _asked_for(packages, "torch", torch_floor(transformers))
    if torch is not None and needed is not None and not at_least(torch, needed):
        upgrade = pip(patient, packages, f"install -U 'torch>={needed}'")
        older = pip(patient, packages, f"install {shlex.quote(transformers_for(torch))}")
        return fail(
            f"torch {torch} is installed, but transformers {transformers} needs {needed} or newer",
            effect="`import transformers` fails with `has no attribute 'register_pytree_node'`"
            if needed == "2.2"
            else "the first step fails with `torch.is_autocast_enabled() takes no arguments`"
            if at_least(torch, "2.2") and not at_least(transformers, "5.1")
            else "transformers prints `Disabling PyTorch`, and its models and its Trainer are missing",
            hint=f"run `{upgrade}`, or `{older}`",
            transformers=transformers,
            package="torch",
            version=torch,
            needed=needed,
        )
    if run.framework not in ("", "hf"):
        return None  # what follows concerns only transformers' Trainer
    return _accelerate_of_the_trainer(transformers, packages, patient, run)


def _accelerate_of_the_trainer(
    transformers: str, packages: Packages, patient: Patient | Missing, run: RunNeeds
) -> Finding | None:
    """The finding for an accelerate that the Trainer does not work with."""
    accelerate = packages.version("accelerate")
    if accelerate is None:
        return None
    rows, (since, before, gone) = TRANSFORMERS_ACCELERATE, TRAINER_PASSES_DISPATCH_BATCHES
    needed = next((floor for first, floor in rows if at_least(transformers, first)), None)
    surely = run.framework == "hf" or at_least(transformers, "4.52")
    # many use DeepSpeed and an older transformers without its Trainer
    level = fail if surely else warn
    fitting = pip(patient, packages, f"install -U {shlex.quote(accelerate_for(transformers))}")
    if needed is not None and not at_least(accelerate, needed):
        return level(
            f"accelerate {accelerate} is installed, but transformers {transformers} needs {needed}"
            " or newer",
            effect="the Trainer stops with `unwrap_model() got an unexpected keyword argument`"
            if at_least(transformers, "4.52")
            else "`TrainingArguments` and the Trainer stop with an `ImportError`",
            hint=f"run `{fitting}`, or install an older transformers",
            transformers=transformers,
            package="accelerate",
            version=accelerate,
            needed=needed,
        )
    passes = at_least(transformers, since) and not at_least(transformers, before)
    if passes and surely_at_least(accelerate, gone):
        return level(
            f"accelerate {accelerate} is installed, but the Trainer of transformers {transformers}"
            f" passes arguments that accelerate {gone} removed",
            effect="the Trainer stops with `Accelerator.__init__() got an unexpected keyword argument"
            " 'dispatch_batches'`",
            hint=f"run `{fitting}`, or upgrade transformers to {before} or newer",
            transformers=transformers,
            package="accelerate",
            version=accelerate,
            removed_in=gone,
        )
    return None


def _resumes(run: RunNeeds, command: LaunchCommand | Missing) -> bool:
    """Whether transformers' Trainer is told to go on from a checkpoint."""
    if run.framework not in ("", "hf"):
        return False
    if isinstance(command, LaunchCommand) and command.has_script_option("resume_from_checkpoint"):
        return True
    return bool(run.trainer_values.get("resume_from_checkpoint"))


def _cannot_resume(
    transformers: str, packages: Packages, patient: Patient | Missing
) -> Finding | None:
    """The finding for a Trainer that does not read its own checkpoints with this torch."""
    torch, (first, before) = packages.version("torch"), TRAINER_RESUMES
    if torch is None:
        return None
    if surely_at_least(torch, TORCH_OF_WEIGHTS) and not at_least(transformers, first):
        upgrade = pip(patient, packages, f"install -U 'transformers>={first}'")
        why = (
            f"the Trainer of transformers {transformers} reads `rng_state.pth` with `torch.load`, which"
            f" since torch {TORCH_OF_WEIGHTS} reads only weights, and torch {torch} is installed"
        )
        effect = "resuming fails with `Weights only load failed`"
        hint = (
            f"run `{upgrade}`, or delete the files `rng_state*.pth` of the checkpoint: the Trainer"
            " then goes on with other random numbers"
        )
    elif surely_at_least(transformers, before) and not at_least(torch, TORCH_OF_WEIGHTS):
        upgrade = pip(patient, packages, f"install -U 'torch>={TORCH_OF_WEIGHTS}'")
        older = pip(patient, packages, f"install 'transformers>={first},<{before}'")
        why = (
            f"the Trainer of transformers {transformers} resumes only with torch {TORCH_OF_WEIGHTS} or"
            f" newer, but torch {torch} is installed"
        )
        effect = (
            "resuming fails: transformers asks for torch 2.6 before it reads a file of torch"
            if at_least(transformers, "4.52")
            else "resuming fails with `Weights only load failed`"
        )
        hint = f"run `{upgrade}`, or `{older}`"
    else:
        return None
    return warn(
        why,
        effect=effect,
        hint=hint,
        transformers=transformers,
        package="torch",
        version=torch,
    )


def _asked_for(packages: Packages, name: str, known: str | None) -> str | None:
    """The oldest release that transformers itself states for its extra `torch`, if that is newer.

    Releases that came after the table state it, and check it when they are imported.
    """
    if known is None:
        return None
    for text in packages.requires.get("transformers", ()):
        stated = _STATED.match(text)
        if stated and stated[1] == name and not at_least(known, stated[2]):
            return stated[2]
    return known


HINT = "upgrade transformers, accelerate and deepspeed together: `python -m pip install -U transformers accelerate deepspeed`"

SIGNATURES = _transformers_deepspeed_incompatible_signatures.SIGNATURES
