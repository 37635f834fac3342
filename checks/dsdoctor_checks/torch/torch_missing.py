"""torch is not installed in the examined interpreter.

## Why it matters
DeepSpeed is a library on top of torch: without it nothing starts.

## What to do
Install torch into this very interpreter, in the build that fits the driver, or point dsdoctor
to the interpreter that the job uses with `--python`.

## References
- https://pytorch.org/get-started/locally/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Level,
    Missing,
    Patient,
    Scope,
    Signature,
    TorchBuild,
    check,
    fail,
)
from dsdoctor_checks._util import listed

CONDITION = Condition(
    "torch-missing",
    id="DSD301",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    narrower=("env-not-activated",),
)


@check(CONDITION)
def torch_is_installed(torch: TorchBuild, patient: Patient | Missing) -> Iterator[Finding]:
    """There must be a torch, and its version must be readable."""
    if torch.version is not None:
        return
    if isinstance(patient, Missing):
        where, python = "the examined interpreter", "python"
        evidence = {}
    else:
        kind = {"venv": "the venv", "conda": "the conda environment"}.get(patient.kind)
        where = f"{kind} `{patient.prefix}`" if kind else f"`{patient.executable}`"
        python = patient.executable
        evidence = {"prefix": patient.prefix, "chosen_by": patient.chosen_by}
    if torch.error is not None:
        yield fail(
            f"torch in {where} is damaged: {torch.error}",
            effect="`import torch` does not work, and neither does DeepSpeed",
            hint=f"reinstall it with `{python} -m pip install --force-reinstall torch`",
            path=torch.path,
            error=torch.error,
            python=python,
            **evidence,
        )
        return
    yield fail(
        f"torch is not installed in {where}",
        effect="DeepSpeed cannot be imported",
        hint=listed(
            [
                f"install it with `{python} -m pip install torch`",
                "name the interpreter of the job with `--python`",
            ]
        ).replace(" and ", ", or "),
        python=python,
        **evidence,
    )


HINT = "activate the environment that holds torch, or install it: `python -m pip install torch`"

SIGNATURES = (
    # pip builds in an empty environment: that is another illness, with another cure
    Signature(
        pattern=r"No module named (?:'torch'|torch)(?:$|[\s;,)])",
        examples=(
            "ModuleNotFoundError: No module named 'torch'",
            "ImportError: No module named torch",
            "/usr/bin/python3: Error while finding module specification (ModuleNotFoundError: No module named 'torch')",
        ),
        not_examples=("ModuleNotFoundError: No module named 'torch'_x",),
        level=Level.STRONG,
        not_near=(
            "Getting requirements to build wheel",
            "pip subprocess",
            "get_requires_for_build_wheel",
        ),
    ),
)
