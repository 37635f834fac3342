"""Looks whether the program and the script of the command behind `check --` are there."""

from __future__ import annotations

import posixpath
import re

from dsdoctor.api import LaunchCommand, LaunchFiles, Missing, Patient, RunNeeds, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why

#: Words that the shell itself knows, which no search of PATH finds.
_SHELL = (
    *(".", "alias", "builtin", "cd", "command", "eval", "exec", "export", "module", "set"),
    *("source", "time", "ulimit", "umask", "unset", "wait"),
)
#: What only a shell understands: then the command is more than its first program.
_SYNTAX = re.compile(r"[;&|<>`$*?~(){}]")


def _there(host: Host, path: str) -> bool | None:
    try:
        host.stat(path)
    except HostError as error:
        return False if error.missing.why is Why.ABSENT else None
    return True


def _found(host: Host, program: str, command: LaunchCommand, run: RunNeeds, bin_dir: str) -> str:
    """Where the program is; "" = nowhere."""
    if "/" in program:
        path = posixpath.normpath(posixpath.join(run.cwd, program))
        return "" if _there(host, path) is False else path
    path = host.which(program, command.env.get("PATH")) or ""
    beside = posixpath.join(bin_dir, program) if bin_dir else ""
    return path or (beside if beside and _there(host, beside) else "")


@probe
def launch_files(
    host: Host, run: RunNeeds, command: LaunchCommand, patient: Patient | Missing
) -> LaunchFiles:
    """Judges no path that a shell would first expand; nothing on Windows, which knows endings."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "programs are not looked for on Windows")
    if any(_SYNTAX.search(word) for word in command.argv) or not command.program:
        return LaunchFiles(folder=run.cwd)
    program = None if command.program in _SHELL else command.program
    bin_dir = "" if isinstance(patient, Missing) else patient.bin_dir or ""
    script = command.script if (command.script or "").endswith((".py", ".sh")) else None
    path = None if script is None else posixpath.normpath(posixpath.join(run.cwd, script))
    return LaunchFiles(
        program=program,
        program_path=(_found(host, program, command, run, bin_dir) or None) if program else None,
        script=script,
        script_path=path,
        script_exists=None if path is None else _there(host, path),
        folder=run.cwd,
    )
