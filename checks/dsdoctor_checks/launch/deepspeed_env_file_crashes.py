"""A line of `.deepspeed_env` crashes the launcher.

## Why it matters
For a job on several nodes the launcher splits every line of the file at its first `=`. An empty line
or a comment without `=` stops it with `ValueError: not enough values to unpack`. A comment with `=`
is exported as a variable whose name begins with `#`.

## What to do
Keep only lines of the form `NAME=value` in the file.

## References
deepspeed/launcher/runner.py (0.19.8, `DEEPSPEED_ENVIRONMENT_NAME` and the loop that reads it)
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedEnvFile,
    Finding,
    Hostfile,
    LaunchCommand,
    Missing,
    Scope,
    check,
    fail,
    warn,
)

CONDITION = Condition(
    "deepspeed-env-file-crashes",
    id="DSD1202",
    scope=Scope.JOB,
    since="0.1",
    fixes=("repair-env-file",),
)


@check(CONDITION)
def env_file_is_sound(
    file: DeepSpeedEnvFile, hostfile: Hostfile | Missing, command: LaunchCommand | Missing
) -> Iterator[Finding]:
    """Fails if this run reads the file, warns if another run would."""
    if isinstance(command, LaunchCommand) and command.launcher not in {"deepspeed", "accelerate"}:
        return
    many = isinstance(hostfile, Hostfile) and (
        len(hostfile.entries) > 1
        or (isinstance(command, LaunchCommand) and "force_multi" in command.options)
    )
    for problem in file.problems:
        crashes = "=" not in problem.text
        shown = f", `{problem.text}`," if problem.text.strip() else ""
        yield (fail if many and crashes else warn)(
            f"line {problem.line} of `{file.path}`{shown} is not `NAME=value`: {problem.reason}",
            effect=(
                "`ValueError: not enough values to unpack` in jobs on several nodes"
                if crashes
                else "it is exported to the other nodes under that name"
            ),
            hint=f"delete line {problem.line} of `{file.path}`",
            path=file.path,
            line=problem.line,
            text=problem.text,
        )
