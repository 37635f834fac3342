"""A package of the job is installed in several directories of sys.path.

## Why it matters
Python imports the first copy. Which one that is depends on PYTHONPATH, on the user site and on how
the job is started. Two ranks or two runs can use different versions, and pip upgrades only one.

## What to do
Uninstall the copies that you do not need.

## References
- https://docs.python.org/3/library/site.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    Missing,
    Packages,
    Patient,
    Scope,
    check,
    warn,
)
from dsdoctor_checks._pip import pip
from dsdoctor_checks._util import listed

CONDITION = Condition("several-copies-of-a-package", id="DSD908", scope=Scope.USER_ENV, since="0.1")
#: A second numpy or pydantic from the Linux distribution is common and harmless; these are not.
JUDGED = ("torch", "deepspeed", "transformers", "accelerate", "triton")


@check(CONDITION)
def packages_are_there_once(packages: Packages, patient: Patient | Missing) -> Iterator[Finding]:
    """Judges the distributions that a job loads in every rank."""
    for name in JUDGED:
        package = packages.packages.get(name)
        others = () if package is None else tuple(set(package.duplicates) - {package.location})
        if package is None or not others:
            continue
        remove = pip(patient, packages, f"uninstall {name}")
        yield warn(
            f"{name} {package.version} is imported from `{package.location}`, but "
            f"{listed(f'`{folder}`' for folder in sorted(others))} "
            f"{'contains' if len(others) == 1 else 'contain'} another copy",
            effect="which copy a job imports depends on how it is started",
            hint=f"run `{remove}` until no copy is left, then install {name} once",
            package=name,
            version=package.version,
            location=package.location,
            others=sorted(others),
        )
