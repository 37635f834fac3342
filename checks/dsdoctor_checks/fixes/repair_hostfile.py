"""Corrects lines of the hostfile that the deepspeed launcher rejects.

## What it does
Changes `HOST 8`, `HOST:8` and `HOST slots = 8` to `HOST slots=8`. If a host is listed twice, keeps
its first line. Turns lines that it cannot interpret into comments, and keeps comments.

## Undo
Restores the previous file.
"""

from __future__ import annotations

import re

from dsdoctor.api import Findings, Hostfile, Impossible, Plan, Reach, RepairFiles, Write, fix

NAME = "repair-hostfile"
_LOOSE = re.compile(
    r"^(?P<host>[A-Za-z0-9][\w.-]*)\s*(?:[:,\s]\s*(?:slots\s*[=:]?\s*)?(?P<n>\d+))\s*$"
)


def corrected(line: str) -> str | None:
    """A line as the launcher accepts it; None if its meaning is unclear.

    >>> corrected("node-b 8"), corrected("node-c:4"), corrected("node-d slots = 2"), corrected("x y z")
    ('node-b slots=8', 'node-c slots=4', 'node-d slots=2', None)
    """
    found = _LOOSE.match(line.strip())
    return f"{found['host']} slots={found['n']}" if found else None


@fix(NAME, reach=Reach.HOME)
def repair_hostfile(
    hostfile: Hostfile, files: RepairFiles, findings: Findings
) -> Plan | Impossible | None:
    """Corrects each line that the launcher rejects."""
    if not hostfile.problems or not findings.bad("hostfile-or-ssh-problem"):
        return None
    held = files.get("hostfile")
    if held is None or any(problem.line == 0 for problem in hostfile.problems):
        return Impossible(
            why=f"`{hostfile.path}` lists no host; add a line `HOST slots=N` for each host"
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
            why=f"no line of `{path}` contains a host; add a line `HOST slots=N` for each host"
        )
    return Plan(
        name=NAME,
        title=f"correct `{path}` for the deepspeed launcher",
        steps=(Write(write=path, content="\n".join([*lines, ""]), why="; ".join(done),
                     reach=Reach.HOME),),
        proves=("hostfile-or-ssh-problem",),
        reach=Reach.HOME,
        reasons=tuple(done),
    )  # fmt: skip
