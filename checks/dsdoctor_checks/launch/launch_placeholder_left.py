"""The command contains a placeholder that was never replaced.

## Why it matters
Commands copied from a README or a forum answer contain placeholders such as `<path>`, `{NUM_GPUS}` or
`your_port`. The launcher takes them literally: it stops where it expects a number, or starts a script
that does not exist. A variable of the shell that is not set leaves nothing behind: the option takes the next
word for its value.

## What to do
Replace the placeholder with the value of this job.

## References
- argparse, "type": values are converted as they are given
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Finding,
    LaunchCommand,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    skip,
)

CONDITION = Condition("launch-placeholder-left", id="DSD1214", scope=Scope.JOB, since="0.1")

#: Whole words that no job means literally.
_PLACEHOLDER = re.compile(
    r"<[A-Za-z][\w ./-]*>|\{[A-Za-z_][\w ]*\}|\[[A-Z_]{3,}\]"
    r"|(?:YOUR|your)[_-]\w+|/?path/to/\S*|xxx+|XXX+|\.\.\.|…"
)


#: A variable of the shell that is a whole value.
_VARIABLE = re.compile(r"\$(?:(\w+)|\{(\w+)\})")


def _is_unset(value: str, run: RunNeeds) -> bool:
    found = _VARIABLE.fullmatch(value)
    return found is not None and (found[1] or found[2]) in run.unset


@check(CONDITION)
def no_placeholder_is_left(command: LaunchCommand, run: RunNeeds) -> Iterator[Finding]:
    """Judges the launcher's options and the script's path; a shell may still replace `$VAR`."""
    if command.launcher == "other":
        yield skip("the command starts no launcher that is known")
        return
    rows = [(f"`--{name}`", value) for name, value in command.options.items()]
    rows += [("the script", command.script or "")]
    found = [(where, value) for where, value in rows if _PLACEHOLDER.fullmatch(value)]
    empty = [(where, value) for where, value in rows if _is_unset(value, run)]
    for where, value in empty:
        yield fail(
            f"{where} gets its value from `{value}` in {run.followed}, which neither the script nor this"
            " shell sets",
            effect="the launcher gets no value, and takes the next word for it",
            hint=f"set `{value.strip('${}')}` in the script or before the command",
            option=where,
            value=value,
        )
    for where, value in found:
        yield fail(
            f"{where} is `{value}`, which is a placeholder",
            effect="the launcher takes it literally and fails",
            hint=f"replace `{value}` with the {'path of your script' if value == command.script else 'value for this job'}",
            option=where,
            value=value,
        )
    if not found and not empty:
        yield ok()
