"""What a launch line starts a container with, and the command inside it."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

import msgspec

from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.model.facts.run import ContainerStart
from dsdoctor.paste.lines import Line
from dsdoctor.paste.shell_passages import CONTAINERS
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.command_tables import COUNTING
from dsdoctor.probes.shell_lines import launches
from dsdoctor.probes.shell_programs import is_launch

SHELL = re.compile(r"(?:ba|da|z|k)?sh$")
SHELL_OPTION = re.compile(r"-[a-z]{0,3}c$")
_PYTHON = re.compile(r"python[\d.]*")


def request_container(
    container: ContainerStart, command: LaunchCommand, lines: Sequence[Line], into: Statements
) -> None:
    """State how a command starts a container, and with how many ranks.

    The script is not here to be read. A text that names torch is taken to be about a script that
    imports it.
    """
    ranks = command.num_gpus if command.launcher in COUNTING else None
    named = any("torch" in line.text for line in lines)
    container = msgspec.structs.replace(container, uses_torch=container.uses_torch or named)
    into.request(container=container, container_ranks=ranks)


def followed(words: Sequence[str]) -> tuple[str, ...]:
    """The command that a container or `bash -c` starts, as far as the words show.

    >>> followed(["docker", "run", "-it", "img", "torchrun", "a.py"])
    ('torchrun', 'a.py')
    >>> followed(["srun", "-N2", "bash", "-c", "cd x && torchrun a.py"])
    ('srun', '-N2', 'torchrun', 'a.py')
    """
    words = in_shell(words)
    if words and posixpath.basename(words[0]) in CONTAINERS and {"run", "exec"} & {*words[1:3]}:
        inside = (
            words[place:]
            for place in range(2, len(words))
            if is_launch(words[place : place + 3]) or _PYTHON.fullmatch(words[place])
        )
        return next((found for found in inside if _runs_python(found)), words)
    return words


def in_shell(words: Sequence[str]) -> tuple[str, ...]:
    """The command with what `bash -c` starts in its place, if that is one command."""
    words = tuple(words[1:] if words[:1] == ("sudo",) else words)
    for place, word in enumerate(words[:-2]):
        if SHELL.fullmatch(posixpath.basename(word)) and SHELL_OPTION.fullmatch(words[place + 1]):
            inner = launches(words[place + 2])
            return (*words[:place], *inner[0].words) if len(inner) == 1 else words
    return words


def _runs_python(words: Sequence[str]) -> bool:
    """Whether a launcher starts a Python script; an image may be called like a launcher."""
    return (parse_command(words).script or "").endswith(".py")
