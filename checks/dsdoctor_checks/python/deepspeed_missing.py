"""DeepSpeed is not installed in the examined environment.

## Why it matters
A script that imports deepspeed stops at once, and the `deepspeed` command, if there is one at all,
belongs to another environment.

## What to do
Install it into this interpreter: `pip install deepspeed`, or examine the right one with `--python`.

## References
- https://www.deepspeed.ai/tutorials/advanced-install/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Finding,
    Missing,
    Patient,
    Scope,
    Signature,
    check,
    fail,
    ok,
)

CONDITION = Condition(
    "deepspeed-missing",
    id="DSD901",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
)


@check(CONDITION)
def deepspeed_is_installed(
    deepspeed: DeepSpeedInstall, patient: Patient | Missing
) -> Iterator[Finding]:
    """Judges what lies on disk."""
    python = "python3" if isinstance(patient, Missing) else patient.executable
    if deepspeed.error:
        yield fail(
            f"`deepspeed` is installed only in part: {deepspeed.error}",
            effect="`import deepspeed` fails or takes something else",
            hint=f"run `{python} -m pip install --force-reinstall --no-deps deepspeed`",
            path=deepspeed.path,
            error=deepspeed.error,
        )
    elif deepspeed.version is None:
        yield fail(
            f"`deepspeed` is not installed for `{python}`",
            effect="`import deepspeed` ends in `ModuleNotFoundError`",
            hint=f"run `{python} -m pip install deepspeed`, or name the environment that has it "
            "with `--python`",
            python=python,
        )
    else:
        yield ok(version=deepspeed.version, path=deepspeed.path)


HINT = "install it into the environment that runs the job: `python -m pip install deepspeed`"

SIGNATURES = (
    Signature(
        anchor="deepspeed",
        pattern=(
            r"No module named '?deepspeed'?(?:$|[^.\w])|No module named 'deepspeed\.(?![\w.]*_op')[\w.]+'"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'deepspeed'",
            "ImportError: No module named deepspeed",
        ),
        not_examples=("ModuleNotFoundError: No module named 'transformers.deepspeed'",),
        weight=66,
    ),
    Signature(
        anchor=("deepspeed",),
        pattern=(
            r"deepspeed: (?:command )?not found|exec: \x22?deepspeed\x22?: "
            r"|deepspeed: No such file|cannot find command 'deepspeed'|not found: deepspeed\b"
            r"|No such file or directory: '(?:\S{0,200}/)?deepspeed'"
            r"|No module named deepspeed\.__main__|name 'deepspeed' is not defined"
        ),
        examples=("bash: deepspeed: command not found", "sh: 1: deepspeed: not found"),
        not_examples=("deepspeed --num_gpus 2 train.py",),
        weight=66,
    ),
    Signature(
        anchor=(
            "requires DeepSpeed",
            "DeepSpeed is not installed",
            "install deepspeed",
            "DeepSpeed is not available",
            "to use deepspeed",
            "needs DeepSpeed",
            "need DeepSpeed",
            "have DeepSpeed installed",
            "nstall deepspeed",
            "deepspeed is required",
            "deepspeed is not installed",
        ),
        pattern=(
            r"(?i)(?:requires|needs?) DeepSpeed|DeepSpeed is not (?:installed"
            r"|available)|(?:please|must|need to) install deepspeed"
            r"|to use deepspeed.{0,40}install|pip install deepspeed"
            r"|must have DeepSpeed installed|Error: install deepspeed|Error: deepspeed is required"
        ),
        examples=(
            "ImportError: --deepspeed requires DeepSpeed: `pip install deepspeed`.",
            "ValueError: DeepSpeed is not installed => run x",
        ),
        not_examples=(
            "DeepSpeed info: version=0.14",
            "how to install deepspeed with conda",
        ),
        weight=52,
        near=("Error", "Exception: "),
    ),
    Signature(
        anchor="deepspeed",
        pattern=(
            r"module 'deepspeed' has no attribute '(?:init\w+|zero|comm|ops|utils|moe|pipe|runtime"
            r"|accelerator|checkpointing|add_\w+_arguments|DeepSpeed\w+|PipelineModule)'"
            r"|cannot import name '\w+' from 'deepspeed[\w.]*' \(unknown location\)"
        ),
        examples=(
            "AttributeError: partially initialized module 'deepspeed' has no attribute 'initialize'",
            "AttributeError: module 'deepspeed' has no attribute 'zero'",
        ),
        not_examples=("module 'deepspeed.ops' has no attribute 'x'",),
        weight=60,
        masks=("deepspeed-torch-incompatible",),
    ),
    Signature(
        anchor="deepspeed",
        pattern=(
            r"PackageNotFoundError: (?:No package metadata was found for )?'?deepspeed\b"
            r"|DistributionNotFound: The 'deepspeed|'deepspeed' is not recognized as an internal"
            r"|which: no deepspeed in"
        ),
        examples=(
            "importlib.metadata.PackageNotFoundError: No package metadata was found for deepspeed",
            "pkg_resources.DistributionNotFound: The 'deepspeed>=0.9.3' distribution was not found and is required by the application",
            "'deepspeed' is not recognized as an internal or external command,",
        ),
        not_examples=(
            "importlib.metadata.PackageNotFoundError: No package metadata was found for peft",
            "see the notes on `deepspeed`",
        ),
        weight=64,
        masks=("dependency-version-conflict", "windows-unsupported"),
    ),
)
