"""Names a free port for the ranks to meet on.

## What it does
Finds the first free port above the one that is taken and prints the option for this launcher; a
command line is yours to change.

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
    """By the launcher of the command, where one was given."""
    bad = findings.bad("port-in-use")
    if not bad:
        return None
    kind = command.inner or command.launcher if isinstance(command, LaunchCommand) else ""
    option = f"{OPTIONS.get(kind, '--master-port')} {port.port}"
    tell = f"MASTER_PORT={port.port}" if kind == "python" else f"add {option} to the launch command"
    return Plan(
        name=NAME,
        title=f"port {port.port}, on which nobody listens",
        steps=(Tell(tell=tell, why=bad[0].message),),
        proves=("port-in-use",),
        undo="there is nothing to undo",
    )
