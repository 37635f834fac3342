"""Dockerfiles, as the pieces that are linted: what the image is built from, and what it starts."""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from dsdoctor.api import LaunchCommand, Packages, ScriptOptions
from dsdoctor.lint_launches import Part, script_parts
from dsdoctor.model.facts.base import Fact
from dsdoctor.paste.dockerfile import dockerfiles_of
from dsdoctor.paste.environment import environment_of
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage
from dsdoctor.probes.manifest_variables import interpolated

#: torchrun's own variables for options that only a start of the container can state.
_LATER = {"PET_MASTER_ADDR": "(set at the start)", "PET_RDZV_ENDPOINT": "(set at the start)"}
_STARTS = frozenset({"RUN", "CMD", "ENTRYPOINT"})


def image_parts(path: Path, text: str, packages: Packages | None, *, chosen: bool) -> list[Part]:
    """The image as a partial machine, and the launch lines of its last stage.

    Args:
        path: the file.
        text: its content.
        packages: of the environment that will run the commands; None = not known.
        chosen: the user chose that environment.
    """
    whole = text if text.endswith("\n") else f"{text}\n\n"
    lines = tuple(Line(number, row) for number, row in enumerate(whole.split("\n"), 1))
    found = next(dockerfiles_of(Passage(lines, fenced=True, closed=True, lead="")), None)
    if found is None:
        return []
    parts: list[Part] = []
    image, build, set_at = dict[str, str](), dict[str, str](), dict[str, int]()
    for step in found.steps:
        if step.name in ("ENV", "ARG"):
            own = dict(_assigned(step.text, image | build))
            (image if step.name == "ENV" else build).update(own)
            set_at |= dict.fromkeys(own if step.name == "ENV" else (), step.line.number)
        if step.name not in _STARTS:
            continue
        # a list of words is started without a shell
        is_list = step.text.lstrip().startswith("[")
        given = {} if is_list else image | build if step.name == "RUN" else image
        parts += (
            dataclasses.replace(part, line=step.line.number, facts=_at_start(part.facts))
            for part in script_parts(
                path, _command(step.text), packages, chosen=chosen, given=given
            )
        )
    snapshot = environment_of(whole)
    # an image without CUDA, torch or a job says nothing of interest
    if snapshot is not None and (parts or re.search(r"(?i)cuda|torch|deepspeed", whole)):
        if not re.search(
            "(?i)deepspeed", whole
        ):  # it is not known what files that it copies ask for
            snapshot.put(msgspec.structs.replace(snapshot.run, uses_deepspeed=False))
        parts.append(Part([], (), snapshot=snapshot, variables=set_at))
    return parts


def _assigned(text: str, known: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """The variables that `ENV` or `ARG` sets, as far as what they refer to is known.

    >>> list(_assigned('A=1 B="$N x" C=$M D', {"N": "8"})), list(_assigned("PATH /a b", {}))
    ([('A', '1'), ('B', '8 x')], [('PATH', '/a b')])
    """
    try:
        words = shlex.split(text)
    except ValueError:
        return
    if len(words) > 1 and "=" not in words[0]:  # the old form: `ENV NAME value`
        words = [f"{words[0]}={' '.join(words[1:])}"]
    for word in words:
        name, equals, value = word.partition("=")
        filled = interpolated(value, known)
        if equals and "$" not in filled:
            yield name, filled


def _at_start(facts: list[Fact]) -> list[Fact]:
    """What is known of a command that whoever starts the container completes.

    They may set variables, as operators do, and add arguments of the script.
    """
    return [
        msgspec.structs.replace(fact, env={**_LATER, **fact.env})
        if isinstance(fact, LaunchCommand)
        else fact
        for fact in facts
        if not isinstance(fact, ScriptOptions)
    ]


def _command(text: str) -> str:
    """A line for a shell; a list of words is one, too."""
    try:
        words = json.loads(text)
    except ValueError:
        return text
    return shlex.join(map(str, words)) if isinstance(words, list) else text
