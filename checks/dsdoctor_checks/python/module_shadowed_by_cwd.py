"""A file in the job's directory is imported instead of a package of the same name.

## Why it matters
Python searches the script's directory, or the working directory, first. A `deepspeed.py`, a
`torch.py` or a directory of that name hides the real package. The error mentions a circular import
or a missing attribute, not the file.

## What to do
Rename the file and delete its `__pycache__`.

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
    """Fails for each key module that a file hides."""
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
        instead = f"`{real}`" if real and real != path else "the installed package"
        yield fail(
            f"`import {module}` imports `{path}` instead of {instead}",
            effect="the job stops with an `ImportError` or `AttributeError` that names the package",
            hint=f"rename `{shown}`",
            module=module,
            shadowed_by=path,
            origin=real,
        )
