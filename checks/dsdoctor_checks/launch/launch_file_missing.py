"""The command names a program or a script that is not there.

## Why it matters
A misspelt launcher ends at once with `command not found`. A misspelt script is worse: the launcher
starts, spreads over all GPUs or waits in the queue for its nodes, and then every rank ends with
`can't open file`.

## What to do
Correct the name, change to the folder that the command is meant for, or activate the environment
that holds the launcher.

## References
- POSIX.1-2017, Shell Command Language, 2.9.1.1 (command search)
- docs.python.org, "Command line and environment"
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchFiles,
    Scope,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition("launch-file-missing", id="DSD1212", scope=Scope.JOB, since="0.1")
_LAUNCHERS = ("deepspeed", "torchrun", "accelerate", "python", "python3", "srun", "mpirun")


@check(CONDITION)
def program_and_script_are_there(files: LaunchFiles) -> Iterator[Finding]:
    """Speaks of what is certainly absent; what a shell would expand is not judged."""
    if files.program is None and files.script is None:
        yield skip("the command holds shell syntax, or names no file")
        return
    if files.program is not None and files.program_path is None:
        near = difflib.get_close_matches(files.program, _LAUNCHERS, 1)
        yield fail(
            f"`{files.program}` is neither on PATH nor beside the interpreter"
            + (f"; the nearest launcher is `{near[0]}`" if near else ""),
            effect="the command ends at once with `command not found`",
            hint=f"write `{near[0]}`" if near else "correct the name, or activate its environment",
            program=files.program,
        )
    if files.script is not None and files.script_exists is False:
        yield fail(
            f"the script `{files.script}` does not exist in `{files.folder}`",
            effect="every rank ends with `can't open file`",
            hint="correct its path, or start in the folder that it is relative to",
            script=files.script_path,
        )
    if files.program_path is not None and files.script_exists is not False:
        yield ok(program=files.program_path, script=files.script_path)
