"""Launch lines of shell scripts, as the pieces that are linted."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from dsdoctor.api import LaunchCommand, Missing, Packages, ScriptOptions, Why
from dsdoctor.host import HostError, LocalHost
from dsdoctor.lint_accelerate import with_its_file, working_folders
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.launch import LaunchParse
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.probes.command_line import batch_options, parse_command
from dsdoctor.probes.launcher_options import rejected_option
from dsdoctor.probes.script_imports import script_of
from dsdoctor.probes.script_options import options_of
from dsdoctor.probes.shell_lines import launches_with_environment, not_followed
from dsdoctor.probes.shell_programs import after_dashes, is_launch, without_carrier

#: In a word that a shell, or an engine for templates (`{{inputs.gpus}}`), fills in.
_FILLED_IN = re.compile(r"[$`]|\{\{")
#: Variables that change no number of ranks: paths and credentials.
_FILLED_ASSIGNMENT = re.compile(r"[A-Za-z_]*(?:PATH|KEY|TOKEN)=[^$`]*[$`]")
_NOTHING: Mapping[str, str] = {}
_UNKNOWN = Missing(why=Why.NOT_ASKED, detail="the packages of no environment were read")


@dataclasses.dataclass
class Part:
    """A piece of a file that can be judged on its own, such as one launch line.

    Attributes:
        facts: what it states.
        families: families of conditions that judge it; empty = it cannot be judged.
        line: its first line.
        run: what it says about the job.
        not_followed: why the job that it starts is not known.
        snapshot: a partial machine, judged in place of the facts; None = there is none.
        variables: lines of the variables that the snapshot states.
        names: files that it refers to, which are judged too: DeepSpeed configs, and accelerate's.
        environment: what a script has set for a launch line.
    """

    facts: list[Fact]
    families: tuple[str, ...]
    line: int = 0
    run: RunNeeds = dataclasses.field(default_factory=RunNeeds)
    not_followed: str = ""
    snapshot: Snapshot | None = None
    variables: dict[str, int] = dataclasses.field(default_factory=dict)
    names: tuple[str, ...] = ()
    environment: dict[str, str] = dataclasses.field(default_factory=dict)


def script_parts(
    path: Path,
    text: str,
    packages: Packages | None,
    *,
    chosen: bool,
    given: Mapping[str, str] = _NOTHING,
) -> list[Part]:
    """The launch lines of a shell script.

    Args:
        path: the script.
        text: its content.
        packages: of the environment that will run it; None = not known.
        chosen: the user chose that environment, so that it decides which arguments scripts take.
        given: variables that the script gets.
    """
    parts: list[Part] = []
    batch = batch_options(text)
    for command, exported in launches_with_environment(text, given):
        inner = after_dashes(command.words)
        words = tuple(inner) if is_launch(inner) else without_carrier(command.words)
        # `PATH=/opt/bin:$PATH torchrun …`: what the variable adds is not judged
        words = tuple(word for word in words if not _FILLED_ASSIGNMENT.match(word))
        fact = parse_command(words)
        environment = {**exported, **fact.env}
        # neither the arguments of the training script nor its folder are judged
        own = [
            word
            for word in words[: len(words) - len(fact.script_args)]
            if word != fact.script or not word.endswith(".py")
        ]
        script = (
            [*_options_beside(path, fact, packages if chosen else None)]
            if not command.depends_on
            else []
        )
        launcher = fact.inner or fact.launcher
        error = rejected_option(launcher, fact.options)
        parse = [LaunchParse(launcher=launcher, accepted=False, error=error)] if error else []
        if command.depends_on or any(map(_FILLED_IN.search, own)):
            parts.append(
                Part([], (), line=command.line, names=_names(fact), environment=environment)
            )
            if parse and not command.depends_on:  # the names of its options are known
                parts.append(Part([*parse], ("launch",), line=command.line))
            if script:
                parts.append(Part([*script], ("launch",), line=command.line))
            if batch:  # what it asks Slurm for stands in the script all the same
                run = RunNeeds(command=words, quick=True, batch=batch)
                parts.append(Part([fact], ("cluster",), line=command.line, run=run))
            continue
        run = RunNeeds(command=words, quick=True, cwd=str(path.parent), batch=batch)
        if launcher == "accelerate" and not parse:
            parse = [*with_its_file(path, fact.options, packages)]
        facts = [fact, *parse, *script]
        names = _names(fact)
        parts.append(
            Part(
                facts,
                ("launch", "cluster"),
                line=command.line,
                run=run,
                names=names,
                environment=environment,
            )
        )
    parts += [Part([], (), line=line, not_followed=reason) for line, reason in not_followed(text)]
    return parts


def _names(command: LaunchCommand) -> tuple[str, ...]:
    """Files that a launch line passes to DeepSpeed or accelerate."""
    named = (
        command.config_path,
        *(command.options.get(name) for name in ("config_file", "deepspeed_config_file")),
    )
    return tuple(name for name in named if name and not _FILLED_IN.search(name))


def _options_beside(
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
