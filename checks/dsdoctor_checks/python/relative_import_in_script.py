"""A script with a relative import is started by its path.

## Why it matters
Python finds `from .net import Net` in the package of the file. A file that is started by its path
belongs to no package, so every rank stops at that line.

## What to do
Start it as a module, in the folder that contains its package: `torchrun -m package.train` or
`deepspeed --module package.train` instead of `package/train.py`. Or write the import without the dot,
if the other file is in the same folder.

## References
- Python documentation, "Package relative imports" and `-m`
- torchrun, accelerate launch: `-m`, `--module`; deepspeed: `--module`
"""

from __future__ import annotations

import posixpath
import shlex
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    Missing,
    Observation,
    Scope,
    ScriptImports,
    check,
    fail,
)

CONDITION = Condition(
    "relative-import-in-script",
    id="DSD922",
    scope=Scope.JOB,
    since="0.1",
    names=(Observation.RELATIVE_IMPORT,),
)
HINT = "start it as a module of its package (`-m`), or write the import without the leading dots"
#: The option of each launcher for a module.
_OPTION = {"accelerate": "--module", "deepspeed": "--module", "python": "-m", "torchrun": "-m"}


@check(CONDITION)
def imports_fit_the_start(
    imports: ScriptImports, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Fails on a relative import that surely runs in a script that is started by its path."""
    if not imports.relative:
        return
    yield fail(
        f"line {imports.relative} of `{imports.script}` is a relative import, but the script is started"
        " by its path, not as a module of a package",
        effect="every rank stops with `attempted relative import with no known parent package`",
        hint=_hint(imports.script, command),
        script=imports.script,
        line=imports.relative,
    )


def _hint(script: str, command: LaunchCommand | Missing) -> str:
    plain = "write the import without the leading dots"
    launcher = "" if isinstance(command, Missing) else command.inner or command.launcher
    folder, name = posixpath.split(posixpath.normpath(script))
    option = _OPTION.get(launcher)
    parts = folder.split("/") if folder else []
    if option is None or not parts or not all(part.isidentifier() for part in parts):
        return f"start it as a module of its package (`-m`), or {plain}"
    module = ".".join((*parts, name.removesuffix(".py")))
    return f"pass `{option} {shlex.quote(module)}` instead of `{script}`, or {plain}"
