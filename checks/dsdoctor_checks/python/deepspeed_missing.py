"""DeepSpeed is not installed in the environment.

## Why it matters
A script that imports deepspeed stops immediately. If there is a `deepspeed` command, it belongs to
another environment. A job that does not use DeepSpeed needs none: pass its command after `--`, and
its script is read.

## What to do
Install torch, then DeepSpeed with `python -m pip install --no-build-isolation deepspeed` (in an
isolated build, its setup does not find torch), or pass the interpreter of the right environment with
`--python`.

## References
- https://www.deepspeed.ai/tutorials/advanced-install/
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedInstall,
    Finding,
    Level,
    Missing,
    Packages,
    Patient,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
    warn,
    without_fix,
)
from dsdoctor_checks._pip import pip, pip_build
from dsdoctor_checks._util import hint_to_install, holds_no_job

from ._tables import deepspeed_for

CONDITION = Condition(
    "deepspeed-missing",
    id="DSD901",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
)


@check(CONDITION)
def deepspeed_is_installed(
    deepspeed: DeepSpeedInstall,
    patient: Patient | Missing,
    torch: TorchBuild | Missing,
    packages: Packages | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Judges the installed files; a job that does not use DeepSpeed needs none."""
    if run.without_deepspeed:
        yield skip("the job of the command does not use DeepSpeed")
        return
    release = None if isinstance(torch, Missing) else torch.version
    trains = release is not None
    python = "python3" if isinstance(patient, Missing) else patient.executable
    if deepspeed.error:
        again = pip(patient, packages, "install --force-reinstall --no-deps deepspeed")
        yield fail(
            f"`deepspeed` is only partly installed: {deepspeed.error}",
            effect="`import deepspeed` fails or imports something else",
            hint=f"run `{again}`",
            path=deepspeed.path,
            error=deepspeed.error,
        )
    elif deepspeed.version is None:
        # in an isolated build its setup finds no torch: it fails, or pre-builds no op
        install = (
            pip_build(patient, packages, shlex.quote(deepspeed_for(release)))
            if trains
            else pip(patient, packages, "install deepspeed")
        )
        hint = hint_to_install(patient, install, trains=trains)
        effect = "`import deepspeed` fails with `ModuleNotFoundError`"
        if run.command and run.config_path is None and run.uses_deepspeed is None:
            missing = warn(
                f"`deepspeed` is not installed for `{python}`; whether the job uses it is not known",
                effect=effect,
                hint=hint,
                python=python,
            )
            yield without_fix(missing)  # it may not be needed
            return
        else:
            missing = fail(
                f"`deepspeed` is not installed for `{python}`",
                effect=effect,
                hint=hint
                if run.command or not trains
                else f"{hint}; for a job without DeepSpeed, run `dsdoctor check -- CMD`",
                python=python,
            )
        replaced = isinstance(patient, Patient) and patient.left_by_python is not None
        by_hand = replaced or (not trains and holds_no_job(patient))
        yield without_fix(missing) if by_hand else missing
    else:
        yield ok(version=deepspeed.version, path=deepspeed.path)


HINT = "install it into the environment that runs the job: `python -m pip install --no-build-isolation deepspeed`"

SIGNATURES = (
    Signature(
        pattern=r"No module named '?deepspeed'?(?:$|[^.\w])",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=(
            "ModuleNotFoundError: No module named 'deepspeed'",
            "ImportError: No module named deepspeed",
        ),
        not_examples=("ModuleNotFoundError: No module named 'deepspeed.moe'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="deepspeed: (?:command )?not found",
        source="bash 3.2-5.2 execute_cmd.c",
        examples=(
            "bash: deepspeed: command not found",
            "sh: 1: deepspeed: not found",
        ),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"exec: \x22?deepspeed\x22?: ",
        source="Go 1.13-1.24 os/exec/lp_unix.go",
        examples=("exec: deepspeed: ",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="deepspeed: No such file",
        source="coreutils 8-9 src/env.c",
        examples=("deepspeed: No such file",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"not found: deepspeed\b",
        source="dash 0.5 src/exec.c, zsh 5 Src/exec.c",
        examples=("not found: deepspeed",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No such file or directory: '(?:\S{0,200}/)?deepspeed'",
        source="huggingface_hub 2.4.0 cli/upload.py",
        examples=("No such file or directory: 'deepspeed'",),
        not_examples=("FileNotFoundError: [Errno 2] No such file or directory: 'g++'",),
        level=Level.STRONG,
    ),
    Signature(
        pattern=r"No module named deepspeed\.__main__",
        source="python 3.3-3.14 Lib/importlib/_bootstrap.py",
        examples=("No module named deepspeed.__main__",),
        level=Level.STRONG,
    ),
    Signature(
        pattern="name 'deepspeed' is not defined",
        source="python 3.3-3.14 Python/ceval.c",
        examples=("name 'deepspeed' is not defined",),
        level=Level.STRONG,
        # a name that one of its own modules does not import
        not_near=(
            "/deepspeed/__init__.py",
            "/deepspeed/comm/",
            "/deepspeed/module_inject/",
            "/deepspeed/moe/",
            "/deepspeed/ops/",
            "/deepspeed/pipe/",
            "/deepspeed/runtime/",
            "/deepspeed/utils/",
        ),
    ),
    Signature(
        pattern="(?i)(?:requires|needs?) DeepSpeed",
        source="transformers 4.10-5.23 integrations/deepspeed.py",
        examples=(
            "ImportError: --deepspeed requires DeepSpeed: `pip install deepspeed`.",
            "need DeepSpeed",
        ),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)DeepSpeed is not (?:installed|available)",
        source="accelerate 0.27.2-1.15.0 accelerator.py, commands/launch.py, state.py",
        examples=(
            "ValueError: DeepSpeed is not installed => run x",
            "DeepSpeed is not available",
        ),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)(?:please|must|need to) install deepspeed",
        source=(
            "programs' own checks, such as accelerate 0.5-1.15 accelerator.py, deepspeed 0.6-0.19 "
            "autotuning/autotuner.py"
        ),
        examples=(
            "please install deepspeed",
            "must install deepspeed",
            "need to install deepspeed",
        ),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)to use deepspeed.{0,40}install",
        source="programs' own checks, such as lightning 1.2-2.6 strategies/deepspeed.py",
        examples=("to use deepspeed ... install",),
        not_examples=("to use deepspeed ...",),
        near=("Error", "Exception: "),
    ),
    Signature(
        # a command that somebody typed is no message, and only people add a release to it
        pattern=r"(?i)^(?!.*\b(?:I|we)(?:'ve| have)? (?:did|ran|run|tried|used|do|use)\b)(?:.*?)(?:[`'\x22]|: |\brun |\bwith |\bby )pip3? install (?:-U )?deepspeed\b(?! ?[=<>~!]=?\d)",
        source=(
            "transformers 4.10-5.23 integrations/deepspeed.py; accelerate 0.5-1.15 "
            "utils/dataclasses.py; lightning 1.2-2.6 strategies/deepspeed.py"
        ),
        examples=(
            "ImportError: --deepspeed requires DeepSpeed: `pip install deepspeed`.",
            "DeepSpeed is missing: pip install -U deepspeed",
            "run pip3 install deepspeed",
            "DeepSpeed can be installed with pip install deepspeed",
            "Install it by pip install deepspeed",
        ),
        not_examples=(
            "run pip install deepspeedx==0.14.0",
            "run pip install torch deepspeed",
            "Went back with `pip install deepspeed==0.8.3`, and now:",
            "After I ran `pip install deepspeed` and started it again, it shows this",
        ),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)must have DeepSpeed installed",
        source="lightning 2.4.0 fabric/strategies/deepspeed.py, pytorch/strategies/deepspeed.py",
        examples=("must have DeepSpeed installed",),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)Error: install deepspeed",
        source="programs' own checks",
        examples=("RuntimeError: install deepspeed",),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern="(?i)Error: deepspeed is required",
        source="programs' own checks",
        examples=("RuntimeError: deepspeed is required",),
        near=("Error", "Exception: "),
    ),
    Signature(
        pattern=r"module 'deepspeed' has no attribute '(?:init\w+|zero|comm|ops|utils|moe|pipe|runtime|accelerator|checkpointing|add_\w+_arguments|DeepSpeed\w+|PipelineModule)'|cannot import name '\w+' from 'deepspeed[\w.]*' \(unknown location\)",
        source="python 3.5-3.14 Objects/moduleobject.c, python 3.7-3.14 Python/ceval.c import_from",
        examples=(
            "AttributeError: partially initialized module 'deepspeed' has no attribute 'initialize'",
            "AttributeError: module 'deepspeed' has no attribute 'zero'",
            "cannot import name 'name' from 'deepspeedname' (unknown location)",
        ),
        not_examples=(
            "ImportError: cannot import name 'inf' from 'torch._six' (unknown location)",
        ),
        level=Level.STRONG,
        masks=("deepspeed-torch-incompatible",),
        message="Another module is imported as `deepspeed`, or its installation is incomplete",
        hint="rename a `deepspeed.py` or a folder `deepspeed` next to the script; without one, run `python -m pip install --force-reinstall --no-deps deepspeed`",
    ),
    Signature(
        pattern=r"PackageNotFoundError: (?:No package metadata was found for )?'?deepspeed\b|DistributionNotFound: The 'deepspeed|'deepspeed' is not recognized as an internal|which: no deepspeed in",
        source=(
            "python 3.8-3.14 Lib/importlib/metadata/__init__.py; setuptools 30-81 "
            "pkg_resources/__init__.py; Windows 10-11 cmd.exe; GNU which 2.20-2.21 which.c"
        ),
        examples=(
            "importlib.metadata.PackageNotFoundError: No package metadata was found for deepspeed",
            "pkg_resources.DistributionNotFound: The 'deepspeed>=0.9.3' distribution was not found and is required by the application",
            "'deepspeed' is not recognized as an internal or external command,",
            "which: no deepspeed in",
        ),
        level=Level.STRONG,
        masks=("dependency-version-conflict", "unsupported-on-windows"),
    ),
)
