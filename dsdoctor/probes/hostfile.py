"""Reads the hostfile and `.deepspeed_env`, by the grammar of the deepspeed launcher."""

from __future__ import annotations

import posixpath
import re

from dsdoctor.api import probe
from dsdoctor.host import Host, HostError, exists, read_text
from dsdoctor.hostfile import DEFAULT_HOSTFILE, parse_hostfile
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.launch import DeepSpeedEnvFile, Hostfile, LineProblem
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import command_of

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


def parse_env_file(text: str, path: str) -> DeepSpeedEnvFile:
    r"""Reads a `.deepspeed_env` as the launcher does: every line is split at its first `=`.

    >>> parse_env_file("NCCL_DEBUG=INFO\n\n", "e").problems[0].reason
    'the line is empty'
    """
    names: list[str] = []
    problems: list[LineProblem] = []
    for number, raw in enumerate(text.split("\n")[: -1 if text.endswith("\n") else None], 1):
        name, equals, _ = raw.partition("=")
        reason = ""
        if not raw.strip():
            reason = "the line is empty"
        elif not equals:
            reason = "it has no `=`"
        elif not _ASSIGNMENT.match(raw):
            reason = f"`{name}` is not a valid variable name"
        if reason:
            shown = f"{name}=…" if equals else name
            problems.append(LineProblem(line=number, text=shown, reason=reason))
        else:
            names.append(name)
    return DeepSpeedEnvFile(path=path, names=tuple(names), problems=tuple(problems))


@probe
def hostfile(host: Host, run: RunNeeds) -> Hostfile:
    """The hostfile from --hostfile, from the command, or the launcher's default."""
    command = command_of(run)
    named = run.hostfile or (command.hostfile if command else None)
    path = named or DEFAULT_HOSTFILE
    where = posixpath.join(run.cwd, path)
    try:
        text = read_text(host, where)
    except HostError as error:
        if error.missing.why is not Why.ABSENT:
            raise
        if not named:
            raise HostError(
                Why.ABSENT, f"no hostfile was passed, and there is no `{path}`"
            ) from None
        return Hostfile(path=path, exists=False)
    return parse_hostfile(text, path, asked=bool(named))


@probe
def deepspeed_env_file(host: Host, run: RunNeeds) -> DeepSpeedEnvFile:
    """`.deepspeed_env` of the home, then of the working folder; `DS_ENV_FILE` renames it."""
    name = host.env.get("DS_ENV_FILE") or ".deepspeed_env"
    home = host.env.get("HOME")
    found = [
        path
        for folder in (home, run.cwd)
        if folder and exists(host, path := posixpath.join(folder, name))
    ]
    facts = [parse_env_file(read_text(host, path), path) for path in dict.fromkeys(found)]
    if not facts:
        raise HostError(Why.ABSENT, f"there is no `{name}`")
    return next((fact for fact in facts if fact.problems), facts[-1])
