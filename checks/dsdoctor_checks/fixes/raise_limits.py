"""Prints how to raise the limits on locked memory and open files.

## What it does
Prints the lines and the file that they belong to. The system sets limits when a session or a service
starts, so dsdoctor cannot raise them for a job.

## Undo
Remove the lines.
"""

from __future__ import annotations

from dsdoctor.api import Environment, Findings, Missing, OsInfo, Plan, Reach, Step, Tell, fix
from dsdoctor_checks._util import variable

NAME = "raise-limits"


@fix(NAME, reach=Reach.SYSTEM)
def raise_limits(findings: Findings, system: OsInfo, env: Environment | Missing) -> Plan | None:
    """Plans for the way the job is started: in a container, by Slurm or in a login session."""
    memlock, files = findings.bad("memlock-low"), findings.bad("open-files-limit")
    if not memlock and not files:
        return None
    rows = [("memlock", "unlimited", "-1", "MEMLOCK=infinity", memlock),
            ("nofile", "65536", "65536", "NOFILE=65536", files)]  # fmt: skip
    steps: list[Step] = []
    for name, value, docker, unit, bad in rows:
        if not bad:
            continue
        if system.container:
            tell = f"start the container with --ulimit {name}={docker}"
        elif variable(env, "SLURM_JOB_ID"):
            tell = (
                "in /etc/systemd/system/slurmd.service.d/limits.conf on the nodes:\n"
                f"[Service]\nLimit{unit}\n"
                "then: systemctl daemon-reload && systemctl restart slurmd"
            )
        else:
            tell = (
                "in /etc/security/limits.d/90-dsdoctor.conf, then log in again:\n"
                f"* soft {name} {value}\n* hard {name} {value}"
            )
        steps.append(Tell(tell=tell, why=bad[0].message, reach=Reach.SYSTEM))
    return Plan(
        name=NAME,
        title="raise the limits of the job",
        steps=tuple(steps),
        proves=tuple(b[0].condition for b in (memlock, files) if b),
        undo="remove the lines",
        reach=Reach.SYSTEM,
    )
