"""A file in the job's folder has the name of a package and is imported in its place.

## Why it matters
Python puts the script's folder, or the working folder, first on its path. A `deepspeed.py`, a
`torch.py` or a left-over folder of that name there hides the real package, and the error speaks of
a circular import or a missing attribute.

## What to do
Rename the file (and delete its `__pycache__`).

## References
- https://docs.python.org/3/library/sys_path_init.html
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath

from dsdoctor.api import Condition, Finding, Packages, Scope, check, fail, ok

CONDITION = Condition("module-shadowed-by-cwd", id="DSD912", scope=Scope.JOB, since="0.1")


def _installed_there(packages: Packages, module: str, path: str) -> bool:
    """Whether that file is the installed package itself (a checkout, installed editable)."""
    package = packages.packages.get(module)
    folder = PurePath(path).parent
    if package is None or not package.location:
        return False
    location = PurePath(package.location)
    return location in PurePath(path).parents or location == folder


@check(CONDITION)
def no_file_hides_a_package(packages: Packages) -> Iterator[Finding]:
    """Judges each key module that something hides."""
    hidden = {
        module: path
        for module, path in sorted(packages.shadowed.items())
        if not _installed_there(packages, module, path)
    }
    if not hidden:
        yield ok()
    for module, path in hidden.items():
        file = PurePath(path)
        shown = file.parent if file.name == "__init__.py" else file
        real = packages.origins.get(module)
        instead = f"of `{real}`" if real and real != path else "of the installed package"
        yield fail(
            f"`import {module}` takes `{path}` in place {instead}",
            effect="the job ends in an `ImportError` or `AttributeError` that names the package",
            hint=f"give `{shown}` another name",
            module=module,
            shadowed_by=path,
            origin=real,
        )
