"""Installed packages do not satisfy what others of them require.

## Why it matters
pip lets a later install break an earlier one with no more than a line of warning. The result fails
at an import, or works by luck until a line is reached that needs the other version.

## What to do
Install a version that satisfies the requirement, best all packages in one `pip install`, and run
`pip check`.

## References
- https://packaging.python.org/en/latest/specifications/dependency-specifiers/
- DeepSpeed requirements/requirements.txt
"""

from __future__ import annotations

from collections.abc import Iterator

from packaging.version import InvalidVersion

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Finding,
    Missing,
    Packages,
    Patient,
    Scope,
    TorchLive,
    check,
    fail,
    warn,
)

from ._util import imports, normalized, parse_requirement

CONDITION = Condition("dependency-version-conflict", id="DSD906", scope=Scope.USER_ENV, since="0.1")
#: Whose missing requirements stop an import of the job.
VITAL = ("torch", "deepspeed")


@check(CONDITION)
def requirements_are_met(
    packages: Packages,
    patient: Patient,
    torch: TorchLive | Missing,
    deepspeed: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Judges each requirement that applies; an absent package only where an import failed."""
    broken = imports(torch, deepspeed) is False
    for owner, requirements in sorted(packages.requires.items()):
        own = packages.version(owner)
        for text in requirements:
            wanted = parse_requirement(text, patient)
            if own is None or wanted is None or wanted.url:
                continue
            name = normalized(wanted.name)
            have = packages.version(name)
            if have is None:
                if not (broken and owner in VITAL):
                    continue
                what = f"`{name}` is not installed"
            else:
                try:
                    if wanted.specifier.contains(have, prereleases=True):
                        continue
                except InvalidVersion:
                    continue
                what = f"{name} {have} is installed"
            needed = f"{name}{wanted.specifier}"
            yield (fail if broken and owner in VITAL else warn)(
                f"{what}, but {owner} {own} requires `{needed}`",
                effect=f"{owner} fails at import or where it uses `{name}`",
                hint=f"run `pip install '{needed}'`, then `pip check`",
                package=name,
                version=have,
                required_by=owner,
                owner_version=own,
                requirement=needed,
            )
