"""HF_HUB_ENABLE_HF_TRANSFER is set, but the package hf_transfer is not installed.

## Why it matters
Images of GPU clouds set the variable for every program. huggingface_hub before 1.0 then downloads with
hf_transfer, and stops with a `ValueError` if it is not installed in this environment. Files that are
stored in Xet are downloaded without it if hf_xet is installed. huggingface_hub 1.0 and newer ignore the
variable.

## What to do
Install hf_transfer, or unset the variable.

## References
- huggingface_hub 0.16-0.36 file_download.py (`http_get`), lfs.py
- huggingface_hub 1.0 release notes: hf_transfer was removed
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    Patient,
    Scope,
    Signature,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import HUB_TRUE, at_least, job_environment, variable

CONDITION = Condition("hf-transfer-missing", id="DSD917", scope=Scope.USER_ENV, since="0.1")
VARIABLE = "HF_HUB_ENABLE_HF_TRANSFER"


@check(CONDITION)
def hf_transfer_is_installed(
    packages: Packages,
    env: Environment,
    patient: Patient | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges the variable if the hub's client reads it and may go online."""
    hub = packages.version("huggingface-hub")
    of_job = job_environment(env, command)
    offline = (variable(of_job, "HF_HUB_OFFLINE") or "").upper() in HUB_TRUE
    if hub is None or at_least(hub, "1.0") or offline:
        yield skip("no client of the hub that reads the variable is installed, or it is offline")
        return
    on = (variable(of_job, VARIABLE) or "").upper() in HUB_TRUE
    if not on or packages.version("hf-transfer") is not None:
        yield ok(enabled=on)
        return
    yield warn(
        f"`{VARIABLE}` is set, but `hf_transfer`, which huggingface_hub {hub} then uses for downloads, is"
        " not installed",
        effect="downloads from the hub stop with a `ValueError`, except those of Xet files with hf_xet",
        hint=f"run `{pip(patient, packages, 'install hf_transfer')}`, or unset `{VARIABLE}`",
        variable=VARIABLE,
        huggingface_hub=hub,
    )


HINT = f"run `pip install hf_transfer` in the environment of the job, or unset `{VARIABLE}`"

SIGNATURES = (
    Signature(
        pattern="Fast (?:download|uploading) using 'hf_transfer' is enabled",
        source="huggingface_hub 0.14-0.36 file_download.py, lfs.py",
        examples=(
            "ValueError: Fast download using 'hf_transfer' is enabled (HF_HUB_ENABLE_HF_TRANSFER=1) but 'hf_transfer' package is not available in your environment. Try `pip install hf_transfer`.",
            "ValueError: Fast uploading using 'hf_transfer' is enabled (HF_HUB_ENABLE_HF_TRANSFER=1) but 'hf_transfer' package is not available in your environment. Try `pip install hf_transfer`.",
        ),
        level=Level.CERTAIN,
        masks=("script-module-missing",),
        message="`HF_HUB_ENABLE_HF_TRANSFER` is set, but the package hf_transfer is not installed",
    ),
)
