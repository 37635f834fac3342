"""Takes lines out of `.deepspeed_env` that crash the launcher.

## What it does
Removes empty lines, comments and lines without `=` (the launcher cuts every line at its first `=`
and stops where there is none), and `export ` in front of a name.

## Undo
Puts the former file back.
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
    """A line as the launcher reads it, None = it goes.

    >>> corrected("export NCCL_DEBUG=INFO"), corrected("# remark"), corrected(""), corrected("A = 1")
    ('NCCL_DEBUG=INFO', None, None, 'A=1')
    """
    found = re.match(r"\s*(?:export\s+)?([A-Za-z_]\w*)\s*=\s*(.*)$", line)
    return f"{found[1]}={found[2]}" if found else None


@fix(NAME, reach=Reach.HOME)
def repair_env_file(
    file: DeepSpeedEnvFile, files: RepairFiles, findings: Findings
) -> Plan | Impossible | None:
    """Only the lines that the launcher trips over."""
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
        title=f"`{path}` without the lines that crash the launcher",
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
