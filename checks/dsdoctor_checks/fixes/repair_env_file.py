"""Removes lines from `.deepspeed_env` that crash the launcher.

## What it does
Removes empty lines, comments, lines without `=`, and the word `export` before a name. The launcher
splits every line at its first `=` and stops at a line without one.

## Undo
Restores the previous file.
"""

from __future__ import annotations

import re

from dsdoctor.api import (
    DeepSpeedEnvFile,
    Findings,
    Impossible,
    Plan,
    Reach,
    RepairFiles,
    Write,
    fix,
)

NAME = "repair-env-file"


def corrected(line: str) -> str | None:
    """A line as the launcher accepts it; None if it has to be removed.

    >>> corrected("export NCCL_DEBUG=INFO"), corrected("# remark"), corrected(""), corrected("A = 1")
    ('NCCL_DEBUG=INFO', None, None, 'A=1')
    """
    found = re.match(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$", line)
    return f"{found[1]}={found[2]}" if found else None


@fix(NAME, reach=Reach.HOME)
def repair_env_file(
    file: DeepSpeedEnvFile, files: RepairFiles, findings: Findings
) -> Plan | Impossible | None:
    """Changes only the lines that crash the launcher."""
    if not file.problems or not findings.bad("deepspeed-env-file-crashes"):
        return None
    held = files.get("deepspeed-env")
    if held is None:
        return Impossible(why=f"`{file.path}` cannot be read")
    path, text = held
    wrong = {problem.line for problem in file.problems}
    lines = text.split("\n")
    if text.endswith("\n"):
        lines.pop()
    made = [corrected(line) if n in wrong else line for n, line in enumerate(lines, 1)]
    kept = [line for line in made if line is not None]
    return Plan(
        name=NAME,
        title=f"remove the lines of `{path}` that crash the launcher",
        steps=(
            Write(
                write=path,
                content="\n".join([*kept, ""]) if kept else "",
                why=f"lines {', '.join(map(str, sorted(wrong)))} are not `NAME=value`",
                reach=Reach.HOME,
            ),
        ),
        proves=("deepspeed-env-file-crashes",),
        reach=Reach.HOME,
    )
