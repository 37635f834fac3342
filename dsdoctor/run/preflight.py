"""The check before the start, in a process of its own: `dsdoctor run` itself stays small.

    python -m dsdoctor.run.preflight FOLDER quick|full CMD…

Writes `snapshot.json` and `report.json` into the folder and exits as `check` does.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from dsdoctor import files, packs, settings
from dsdoctor.errors import UsageError
from dsdoctor.examine import Request, examine, read_config
from dsdoctor.judge import Policy
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.report import exit_code
from dsdoctor.probes.command_line import parse_command
from dsdoctor.run.preflight_seconds import SECONDS


def needs_of(command: Sequence[str], *, quick: bool) -> RunNeeds:
    """What a command line asks of the machine, with the config that it names."""
    parsed = parse_command(tuple(command))
    config = None
    if parsed.config_path is not None:
        # a config that is not there is reported by its own condition
        with contextlib.suppress(UsageError):
            config = read_config(parsed.config_path)
    return RunNeeds(
        command=tuple(command),
        config_path=parsed.config_path,
        config=config,
        hostfile=parsed.hostfile,
        quick=quick,
        cwd=str(Path.cwd()),
    )


def main(arguments: Sequence[str]) -> int:
    """Examines, writes, and returns the exit status of `check`."""
    folder, mode, *command = arguments
    registry = packs.load()
    found, _ = settings.without_leftovers(settings.load(), registry)
    units = registry.select((), found.ignore)
    request = Request(run=needs_of(command, quick=mode == "quick"), timeout=SECONDS[mode])
    snapshot, report = examine(request, registry, units, Policy(limits=found.limits))
    files.write(Path(folder, "snapshot.json"), snapshot.to_json(), mode=0o600)
    files.write(Path(folder, "report.json"), msgspec.json.encode(report), mode=0o600)
    return exit_code(report)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
