"""Checks the entries of PYTHONPATH."""

from __future__ import annotations

import posixpath

from dsdoctor.api import LaunchCommand, Missing, PythonPath, RunNeeds, probe
from dsdoctor.host import Host, HostError
from dsdoctor.model.facts.base import Why


@probe
def python_path(host: Host, run: RunNeeds, command: LaunchCommand | Missing) -> PythonPath:
    """The variable from the command or this shell; an empty entry is the working directory."""
    if host.system == "Windows":
        raise HostError(Why.UNSUPPORTED, "PYTHONPATH is not read on Windows")
    value = None if isinstance(command, Missing) else command.env.get("PYTHONPATH")
    value = host.env.get("PYTHONPATH", "") if value is None else value
    entries = tuple(entry for entry in value.split(":") if entry)
    missing = []
    for entry in entries:
        if "$" in entry or entry.startswith("~"):
            continue  # a shell would expand it
        try:
            host.stat(posixpath.join(run.cwd, entry))
        except HostError as error:
            if error.missing.why is Why.ABSENT:
                missing.append(entry)
    return PythonPath(entries=entries, missing=tuple(dict.fromkeys(missing)))
