"""DeepSpeed is installed, but importing it fails.

## Why it matters
Every rank of the job imports DeepSpeed. dsdoctor tried the import in the environment's interpreter,
after torch, as a job does, so the job will end with the same error.

## What to do
Fix what the error reports. If it mentions a module, that package is missing or its version is not
compatible with this DeepSpeed.

## References
- DeepSpeed deepspeed/__init__.py
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DamagedPackages,
    DeepSpeedInstall,
    DeepSpeedLive,
    Finding,
    Missing,
    Packages,
    Patient,
    Resources,
    RunNeeds,
    Scope,
    ScriptImports,
    TorchBuild,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    without_fix,
)
from dsdoctor_checks._killed import killed, shortage
from dsdoctor_checks._pip import pip

from ..cuda.rocm_toolkit_missing import misses_cuda  # noqa: TID252  # families of one pack share it
from .package_damaged import reported

CONDITION = Condition(
    "deepspeed-import-broken",
    id="DSD902",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-deepspeed",),
    narrower=(
        "account-unknown",
        "variable-refused",
        "deepspeed-torch-incompatible",
        "module-shadowed-by-cwd",
        "numpy-abi-2",
        "glibc-too-old",
        "libstdcxx-too-old",
        "dependency-version-conflict",
        "transformers-deepspeed-incompatible",
        "triton-unusable",
        "cuda-toolkit-missing",
    ),
)

#: They import DeepSpeed where it is installed, whether the job uses it or not (accelerate 0.16 to
#: 1.15 utils/other.py, extract_model_from_parallel).
_ON_ACCELERATE = frozenset({"accelerate", "diffusers", "peft", "transformers", "trl"})


def _lacking(message: str, patient: Patient | Missing, packages: Packages | Missing) -> str:
    """What installs a package that DeepSpeed requires and does not find; "" = no such one."""
    found = re.match(r"No module named '(\w+)'", message)
    required = () if isinstance(packages, Missing) else packages.requires.get("deepspeed", ())
    names = {re.split(r"[^\w.-]", text, maxsplit=1)[0].lower() for text in required}
    if found is None or found[1] not in names:
        return ""
    return f"run `{pip(patient, packages, f'install {found[1]}')}`; DeepSpeed requires it"


@check(CONDITION)
def deepspeed_imports(
    live: DeepSpeedLive,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedInstall | Missing,
    resources: Resources | Missing,
    build: TorchBuild | Missing,
    patient: Patient | Missing,
    packages: Packages | Missing,
    run: RunNeeds,
    imports: ScriptImports | Missing,
    damaged: DamagedPackages | Missing,
) -> Iterator[Finding]:
    """Reports how the import ended."""
    outcome = live.imported
    if outcome.ok:
        yield ok(seconds=outcome.seconds)
        return
    if isinstance(torch, TorchLive) and not torch.imported.ok:
        yield skip("torch could not be imported, and DeepSpeed imports it")
        return
    if isinstance(deepspeed, DeepSpeedInstall) and deepspeed.version is None:
        yield skip("deepspeed is not installed")
        return
    if misses_cuda(outcome) and isinstance(build, TorchBuild) and build.hip:
        yield skip("torch is built for ROCm, and finds none")  # rocm-toolkit-missing
        return
    if run.without_deepspeed:
        found = set() if isinstance(imports, Missing) else set(imports.found)
        if not found & _ON_ACCELERATE:
            yield skip("the job of the command does not use DeepSpeed")
            return
    if killed(outcome):
        yield shortage(outcome, "deepspeed", resources)
        return
    if others := reported(damaged):
        yield skip(f"package-damaged reports {others}")
        return
    version = deepspeed.version if isinstance(deepspeed, DeepSpeedInstall) else None
    words = (outcome.message or "").strip().splitlines()
    said = words[0] if words else "no message"
    if outcome.error_type == "hang":
        what = f"did not finish: {said}"
    elif outcome.error_type == "signal":
        what = f"was killed by {said}"
    else:
        what = f"failed with `{outcome.error_type}: {said}`"
    finding = fail(
        f"`import deepspeed` {what}",
        effect="every rank fails in the same way when it starts",
        hint="run `python -X faulthandler -c 'import deepspeed'` to see in which module it ends"
        if outcome.error_type == "signal"
        else "run `python -X importtime -c 'import deepspeed'` to see at which module it stops"
        if outcome.error_type == "hang"
        else _lacking(outcome.message or "", patient, packages)
        or "fix what the error reports, then check with `python -c 'import deepspeed'`",
        version=version,
        error_type=outcome.error_type,
        error=outcome.message,
        traceback=outcome.traceback,
        error_text=f"{outcome.message or ''}\n{outcome.traceback}",
        signal=outcome.signal,
        seconds=outcome.seconds,
    )
    yield without_fix(finding) if outcome.error_type == "hang" else finding
