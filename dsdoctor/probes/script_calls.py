"""Calls of the training script: arguments that are not taken, and settings that need a package."""

from __future__ import annotations

import posixpath

from dsdoctor.api import (
    CallSetting,
    LaunchCommand,
    Missing,
    Packages,
    RunNeeds,
    ScriptCalls,
    WrongArgument,
    probe,
)
from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.python import PatientChoice
from dsdoctor.probes.script_imports import examined_script
from dsdoctor.scripts.reach import parsed


@probe
def script_calls(
    host: Host, run: RunNeeds, command: LaunchCommand, choice: PatientChoice, packages: Packages
) -> ScriptCalls | Missing:
    """Reads the script, and what it calls, from their source; nothing is imported or run."""
    script = examined_script(run, command, choice)
    path = posixpath.normpath(posixpath.join(run.cwd, script))
    tree = parsed(read_text(host, path))
    if tree is None:
        raise HostError(Why.UNSUPPORTED, f"`{script}` could not be parsed")
    # difflib: most checks examine no script
    from dsdoctor.scripts.call_settings import settings_of  # noqa: PLC0415
    from dsdoctor.scripts.calls import wrong_calls  # noqa: PLC0415
    from dsdoctor.scripts.sources import Sources  # noqa: PLC0415

    found = wrong_calls(tree, Sources(host, path, run.cwd, packages))
    return ScriptCalls(
        script=script,
        wrong=tuple(WrongArgument(**one._asdict()) for one in found),
        settings=tuple(CallSetting(**one._asdict()) for one in settings_of(tree)),
    )
