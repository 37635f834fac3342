"""Finds a free master port.

## What it does
Finds the first free port above the one that is in use, and prints the launcher option to add to your
command.

## Undo
There is nothing to undo.
"""

from __future__ import annotations

from dsdoctor.api import Findings, FreePort, LaunchCommand, Missing, Plan, Tell, fix

NAME = "choose-port"
OPTIONS = {"accelerate": "--main_process_port", "deepspeed": "--master_port"}


@fix(NAME)
def choose_port(
    port: FreePort, command: LaunchCommand | Missing, findings: Findings
) -> Plan | None:
    """Uses the option of the launcher in the command, if there is one."""
    bad = findings.bad("port-in-use")
    if not bad:
        return None
    kind = command.inner or command.launcher if isinstance(command, LaunchCommand) else ""
    option = f"{OPTIONS.get(kind, '--master-port')} {port.port}"
    tell = f"MASTER_PORT={port.port}" if kind == "python" else f"add {option} to the launch command"
    return Plan(
        name=NAME,
        title=f"use port {port.port}, which is free",
        steps=(Tell(tell=tell, why=bad[0].message),),
        proves=("port-in-use",),
        undo="there is nothing to undo",
    )
