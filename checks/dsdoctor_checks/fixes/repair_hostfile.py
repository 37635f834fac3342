"""Corrects lines of the hostfile that the deepspeed launcher refuses.

## What it does
`HOST 8`, `HOST:8` and `HOST slots = 8` become `HOST slots=8`; a host that stands twice keeps its
first line; a line that cannot be understood becomes a comment. Comments stay.

## Undo
Puts the former file back.
"""

from __future__ import annotations

import re

from dsdoctor.api import Findings, Hostfile, Impossible, Plan, Reach, RepairFiles, Write, fix

NAME = "repair-hostfile"
_LOOSE = re.compile(
    r"^(?P<host>[A-Za-z0-9][\w.-]*)\s*(?:[:,\s]\s*(?:slots\s*[=:]?\s*)?(?P<n>\d+))\s*$"
)


def corrected(line: str) -> str | None:
    """A line as the launcher wants it, None where it cannot be told what is meant.

    >>> corrected("node-b 8"), corrected("node-c:4"), corrected("node-d slots = 2"), corrected("x y z")
    ('node-b slots=8', 'node-c slots=4', 'node-d slots=2', None)
    """
    found = _LOOSE.match(line.strip())
    return f"{found['host']} slots={found['n']}" if found else None


@fix(NAME, reach=Reach.HOME)
def repair_hostfile(
    hostfile: Hostfile, files: RepairFiles, findings: Findings
) -> Plan | Impossible | None:
    """Line by line, where the launcher complains."""
    if not hostfile.problems or not findings.bad("hostfile-or-ssh-problem"):
        return None
    held = files.get("hostfile")
    if held is None or any(problem.line == 0 for problem in hostfile.problems):
        return Impossible(
            why=f"`{hostfile.path}` names no host; write `HOST slots=N` lines into it"
        )
    path, text = held
    lines = text.splitlines()
    done: list[str] = []
    for problem in hostfile.problems:
        old = lines[problem.line - 1]
        new = None if "already" in problem.reason else corrected(old)
        lines[problem.line - 1] = new or f"# {old}"
        done.append(f"line {problem.line}, `{old.strip()}`, becomes `{lines[problem.line - 1]}`")
    if not any(line.strip() and not line.strip().startswith("#") for line in lines):
        return Impossible(
            why=f"no line of `{path}` names a host; write `HOST slots=N` lines into it"
        )
    return Plan(
        name=NAME,
        title=f"`{path}` as the deepspeed launcher reads it",
        steps=(Write(write=path, content="\n".join([*lines, ""]), why="; ".join(done),
                     reach=Reach.HOME),),
        proves=("hostfile-or-ssh-problem",),
        reach=Reach.HOME,
        reasons=tuple(done),
    )  # fmt: skip
