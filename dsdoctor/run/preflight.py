"""The preflight check, in a separate process, so that `dsdoctor run` itself stays small.

    python -m dsdoctor.run.preflight FOLDER quick|full CMD…

Writes `snapshot.json` and `report.json` into the folder and exits as `check` does.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dsdoctor import files, interpreter, packs, settings
from dsdoctor.examine import Request, examine, read_machine
from dsdoctor.host import Host, LocalHost
from dsdoctor.judge import Policy, judge
from dsdoctor.model.facts.run import RunNeeds, Scope
from dsdoctor.model.report import exit_code
from dsdoctor.probes.command_line import parse_command
from dsdoctor.run import elsewhere
from dsdoctor.run.preflight_seconds import SECONDS


def needs_of(command: Sequence[str], *, quick: bool) -> RunNeeds:
    """What a command line needs from the machine, with the config that it refers to."""
    return RunNeeds(
        command=tuple(command),
        hostfile=parse_command(tuple(command)).hostfile,
        quick=quick,
        cwd=str(Path.cwd()),
    )


def chooses_itself(command: Sequence[str], host: Host) -> bool:
    """Whether the command may use any environment: a script, if none is active or given."""
    return parse_command(command).launcher == "other" and interpreter.named(host) is None


def main(arguments: Sequence[str]) -> int:
    """Examines, writes, and returns the exit status of `check`."""
    folder, mode, *command = arguments
    registry = packs.load()
    found, _ = settings.without_leftovers(settings.load(), registry)
    units = registry.select((), found.ignore)
    starter = elsewhere.starter(command, os.environ)
    quick = mode == "quick" or bool(starter)  # this torch is not that of the nodes
    request = Request(run=needs_of(command, quick=quick), timeout=SECONDS[mode])
    policy = Policy(limits=found.limits)
    if chooses_itself(command, LocalHost()):
        units = tuple(unit for unit in units if unit.condition.scope is not Scope.USER_ENV)
    if starter:
        from dsdoctor import compose  # noqa: PLC0415  # only where it is needed

        units = tuple(unit for unit in units if unit.condition.scope is not Scope.NODE)
        snapshot = compose.without_machine(
            read_machine(request, registry, units), f"`{starter}` runs the job on other hosts"
        )
        report = judge(snapshot, units, registry, policy)
    else:
        snapshot, report = examine(request, registry, units, policy)
    files.write(Path(folder, "snapshot.json"), snapshot.to_json(), mode=0o600)
    files.write(Path(folder, "report.json"), msgspec.json.encode(report), mode=0o600)
    return exit_code(report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
