"""PYTHONPATH contains a directory that does not exist.

## Why it matters
Python silently ignores such an entry. Modules that should come from there are not found, or another
copy is imported. The entry is often a typo, a path of another machine, or a directory that is not
mounted here.

## What to do
Correct the entry, mount the directory, or remove the entry from PYTHONPATH.

## References
- https://docs.python.org/3/using/cmdline.html#envvar-PYTHONPATH
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, Finding, PythonPath, Scope, check, ok, warn
from dsdoctor_checks._util import listed

CONDITION = Condition("pythonpath-entry-missing", id="DSD913", scope=Scope.USER_ENV, since="0.1")


@check(CONDITION)
def entries_exist(path: PythonPath) -> Iterator[Finding]:
    """Warns about the entries that do not exist."""
    if not path.missing:
        yield ok(entries=list(path.entries))
        return
    several = len(path.missing) > 1
    yield warn(
        f"`PYTHONPATH` contains {listed(f'`{entry}`' for entry in path.missing)}, which"
        f" {'do' if several else 'does'} not exist",
        effect="Python ignores it: imports fail, or find another copy of the module",
        hint="correct or remove the entry, or mount the directory",
        missing=list(path.missing),
        entries=list(path.entries),
    )
