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
