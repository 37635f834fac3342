"""Installed packages do not satisfy each other's requirements.

## Why it matters
pip lets a later install break an earlier one and prints only a warning. The result fails at import,
or later, when code runs that needs the other version.

## What to do
Install a version that satisfies the requirement, preferably all packages in one `pip install`. Then
run `pip check`.

## References
- https://packaging.python.org/en/latest/specifications/dependency-specifiers/
- DeepSpeed requirements/requirements.txt
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from packaging.version import InvalidVersion

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Finding,
    LaunchFiles,
    Missing,
    Package,
    Packages,
    Patient,
    PythonPath,
    RunNeeds,
    Scope,
    ScriptImports,
    TorchLive,
    check,
    fail,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import at_least, surely_at_least

from ..ops._util import needed_ops  # noqa: TID252  # families of one pack share it
from . import _dependency_version_conflict_signatures
from ._util import imports, normalized, parse_requirement, plainly_met

CONDITION = Condition("dependency-version-conflict", id="DSD906", scope=Scope.USER_ENV, since="0.1")
_ON_THE_CPU = frozenset({"cpu_adam", "cpu_lion"})
#: The first accelerate that imports without `pkg_resources`.
_WITHOUT_PKG_RESOURCES = "0.21"
#: Packages whose missing requirements stop the job at import.
VITAL = ("torch", "deepspeed")
#: Requirements that transformers checks when it is imported, and the first release that does
#: (4.6, 4.30 and 5.24 dependency_versions_check.py, read 2026-11-29).
_REFUSED = {
    **dict.fromkeys(("tqdm", "regex", "packaging", "filelock", "numpy", "tokenizers"), "4.6"),
    **dict.fromkeys(("huggingface-hub", "safetensors"), "4.30"),
}


def _refuses(owner: str, version: str, name: str) -> bool:
    """Whether a package does not import with another release of what it requires."""
    return owner == "transformers" and name in _REFUSED and at_least(version, _REFUSED[name])


def _on_the_cpu(run: RunNeeds) -> bool:
    """Whether the config puts the optimizer on the CPU, which then asks py-cpuinfo for the vendor.

    DeepSpeed 0.19.8 ops/adam/cpu_adam.py and ops/lion/cpu_lion.py: it is imported when the optimizer is
    created; read 2026-11-30.
    """
    return run.config is not None and not _ON_THE_CPU.isdisjoint(needed_ops(run.config))


def _said(torch: TorchLive | Missing, deepspeed: DeepSpeedLive | Missing) -> str:
    """What a package said that stopped the import because of another one's release."""
    for live in (torch, deepspeed):
        if not isinstance(live, Missing) and not live.imported.ok:
            return live.imported.message or ""
    return ""


def _where_it_comes_from(
    package: Package | None, patient: Patient, python_path: PythonPath | Missing
) -> str:
    """What to do if the package is found before that of the environment; "" = it is the latter.

    pip would install another copy into the environment, and the job would still import this one.
    """
    if package is None or not package.location:
        return ""
    place = PurePath(package.location)
    entries = () if isinstance(python_path, Missing) else python_path.entries
    for entry in entries:
        if PurePath(entry) == place:
            return (
                f"remove `{entry}` from PYTHONPATH: {package.name} {package.version} is imported from"
                " there, whatever is installed in the environment"
            )
    site = patient.user_site if patient.kind in ("venv", "conda") else None
    if site and PurePath(site) == place:
        return (
            f"run `export PYTHONNOUSERSITE=1` before the job starts: {package.name}"
            f" {package.version} is imported from `{package.location}`, not from the environment"
        )
    return ""


@check(CONDITION)
def requirements_are_met(
    packages: Packages,
    patient: Patient,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
    script: ScriptImports | Missing,
    python_path: PythonPath | Missing,
    files: LaunchFiles | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """Judges each requirement that applies; a missing package only if an import failed.

    transformers does not require the package that reads the files of some tokenizers.
    """
    yield from _tokenizer_is_readable(packages, patient, files)
    yield from _setuptools_suits_accelerate(packages, patient, run)
    broken = imports(torch, deepspeed) is False
    check_all = pip(patient, packages, "check").rpartition(" && ")[2]
    said = _said(torch, deepspeed)
    imported = script.found if isinstance(script, ScriptImports) else ()
    for owner, requirements in sorted(packages.requires.items()):
        own = packages.version(owner)
        for text in requirements:
            if plainly_met(text, packages):
                continue
            wanted = parse_requirement(text, patient)
            if own is None or wanted is None or wanted.url:
                continue
            name = normalized(wanted.name)
            have = packages.version(name)
            if have is None:
                used = owner == "deepspeed" and name == "py-cpuinfo" and _on_the_cpu(run)
                if not (used or (broken and owner in VITAL)):
                    continue
                what = f"`{name}` is not installed"
                if left := packages.remnants.get(name):
                    what = f"`{name}` is not installed (pip was interrupted while it replaced {name} {left})"
            else:
                try:
                    if wanted.specifier.contains(have, prereleases=True):
                        continue
                except InvalidVersion:
                    continue
                what = f"{name} {have} is installed"
            needed = f"{name}{wanted.specifier}"
            remedy = _where_it_comes_from(packages.packages.get(name), patient, python_path)
            if not remedy:
                install = pip(patient, packages, f"install '{needed}'")
                remedy = f"run `{install}`, then `{check_all}`"
            refuses = have is not None and _refuses(owner, own, name)
            certain = (
                have is None
                or (broken and owner in VITAL)
                or (refuses and owner in imported)
                or (f"{name} version" in said and owner in said)
            )
            yield (fail if certain else warn)(
                f"{what}, but {owner} {own} requires `{needed}`",
                effect=f"`import {owner}` fails"
                if refuses
                else f"{owner} fails at import or where it uses `{name}`",
                hint=remedy,
                package=name,
                version=have,
                required_by=owner,
                owner_version=own,
                requirement=needed,
            )


def _setuptools_suits_accelerate(
    packages: Packages, patient: Patient, run: RunNeeds
) -> Iterator[Finding]:
    """Reports a setuptools without `pkg_resources`, which an old accelerate imports.

    utils/torch_xla.py of the wheels 0.18.0, 0.20.3 and 0.21.0, and setuptools 82 without it; tried
    with transformers 4.30.2, 2026-11-30. Its metadata do not require setuptools.
    """
    accelerate, setuptools = packages.version("accelerate"), packages.version("setuptools")
    if accelerate is None or at_least(accelerate, _WITHOUT_PKG_RESOURCES):
        return
    missing = setuptools is None and packages.origins.get("setuptools") == ""
    if not (missing or surely_at_least(setuptools, "82")):
        return
    what = (
        f"setuptools {setuptools} is installed" if setuptools else "`setuptools` is not installed"
    )
    install = pip(patient, packages, "install 'setuptools<82'")
    upgrade = pip(patient, packages, f"install -U 'accelerate>={_WITHOUT_PKG_RESOURCES}'")
    yield (fail if run.framework in ("hf", "accelerate") else warn)(
        f"{what}, but accelerate {accelerate} imports `pkg_resources`, which only setuptools before 82"
        " contains",
        effect="`import accelerate` fails with `No module named 'pkg_resources'`, and so does"
        " transformers' Trainer",
        hint=f"run `{install}`, or `{upgrade}`",
        package="setuptools",
        version=setuptools,
        required_by="accelerate",
        owner_version=accelerate,
        requirement="setuptools<82",
    )


def _tokenizer_is_readable(
    packages: Packages, patient: Patient, files: LaunchFiles | Missing
) -> Iterator[Finding]:
    """Warns if the model's tokenizer exists as a file of SentencePiece only, which is not installed.

    transformers 5.24 then tries tiktoken, and its exception names that package.
    """
    own = packages.version("transformers")
    if isinstance(files, Missing) or not files.model_tokenizer or own is None:
        return
    if packages.version("sentencepiece") is not None:
        return
    yield warn(
        f"`sentencepiece` is not installed, but the tokenizer of `{files.model}` exists only as"
        f" `{files.model_tokenizer}`, which transformers {own} cannot read without it",
        effect="`AutoTokenizer.from_pretrained` raises an exception, which may name `tiktoken` instead",
        hint=f"run `{pip(patient, packages, 'install sentencepiece protobuf')}`, or put the model's"
        " `tokenizer.json` into its folder",
        package="sentencepiece",
        required_by="transformers",
        owner_version=own,
        tokenizer=files.model_tokenizer,
    )


HINT = "upgrade the older of the two packages named in the error: `python -m pip install -U NAME`"

SIGNATURES = _dependency_version_conflict_signatures.SIGNATURES
