"""The arguments of a training script whose launch line is linted, and that lies in the project."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from dsdoctor.api import LaunchCommand, Missing, Packages, ScriptOptions, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.lint_accelerate import working_folders
from dsdoctor.probes.script_imports import script_of
from dsdoctor.probes.script_options import options_of

_UNKNOWN = Missing(why=Why.NOT_ASKED, detail="the packages of no environment were read")


def options_beside(
    file: Path, command: LaunchCommand, packages: Packages | None
) -> Iterator[ScriptOptions]:
    """The verdict of the parser of the script that a launch line starts, if it can be told.

    Args:
        file: contains the line.
        command: the line.
        packages: of the environment that will run it; None = not known.
    """
    try:
        script = script_of(command)
        folders = [place for place in working_folders(file) if (place / script).is_file()]
        if len(folders) == 1:  # else it is not known which one is meant
            yield options_of(LocalHost(), str(folders[0]), command, script, packages or _UNKNOWN)
    except (HostError, ValueError):  # a path with NUL is no file
        return
