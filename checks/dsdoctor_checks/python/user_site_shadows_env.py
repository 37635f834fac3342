"""Packages in ~/.local are used instead of those of the environment.

## Why it matters
Conda environments, and venvs created with `--system-site-packages`, search the user site before
their own packages. A forgotten `pip install --user torch` then takes precedence in every
environment.

## What to do
Set `PYTHONNOUSERSITE=1` in the job, or uninstall the copy in `~/.local`.

## References
- https://docs.python.org/3/library/site.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from dsdoctor.api import (
    Condition,
    Finding,
    Packages,
    Patient,
    Scope,
    check,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import listed

from ._util import KEY_MODULES

CONDITION = Condition("user-site-shadows-env", id="DSD911", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def env_is_its_own(patient: Patient, packages: Packages) -> Iterator[Finding]:
    """Warns about key modules that an environment imports from the user site."""
    if patient.user_site is None or patient.kind not in ("venv", "conda"):
        yield skip("the user site is disabled, or the interpreter is not in an environment")
        return
    site = PurePath(patient.user_site)
    taken = sorted(
        name for name in KEY_MODULES if site in PurePath(packages.origins.get(name) or "/").parents
    )
    if not taken:
        yield ok(user_site=patient.user_site)
        return
    yield warn(
        f"{listed(f'`{name}`' for name in taken)} would be imported from `{patient.user_site}`, "
        f"but the environment is `{patient.prefix}`",
        effect="the job runs with packages that are not in the environment",
        hint="run `export PYTHONNOUSERSITE=1` before the job starts",
        modules=taken,
        user_site=patient.user_site,
        prefix=patient.prefix,
    )
