"""Containers of Kubernetes manifests and Compose files, as the pieces that are linted."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from dsdoctor import yaml_text
from dsdoctor.api import LaunchCommand, Packages
from dsdoctor.lazy_regex import lazy
from dsdoctor.lint_launches import Part, script_parts
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_tables import COUNTING
from dsdoctor.probes.manifest_jobs import ConfigText, Described, read_manifest
from dsdoctor.probes.shell_lines import starts_jobs
from dsdoctor.probes.yaml_commands import commands_of

#: Words without which a text describes no container of a job ...
_DESCRIBES = lazy("containers:|services:|ConfigMap|kind: List")
#: ... and without which nothing is judged of a text that starts no job: a resource with a domain,
#: a job of an operator, a file in a ConfigMap. Most manifests of a project have none.
_JUDGED = lazy(
    r"(?<![\w.-])(?!(?:[\w-]+\.)*kubernetes\.io/)[\w-]+(?:\.[\w-]+)+/[\w.-]+[\"']?\s*:"
    r"|PyTorchJob|MPIJob|ConfigMap"
)
#: Files in a ConfigMap that may be read.
_MOST_FILES = 100

#: Reads a file of a ConfigMap: its name and content to the pieces.
Reader = Callable[[str, str], list[Part]]


def manifest_parts(
    path: Path,
    text: str,
    packages: Packages | None,
    read: Reader,
    *,
    chosen: bool,
    named: bool,
) -> tuple[str, list[Part]]:
    """The commands of containers, of steps of CI and of tasks for a cloud, as `script_parts`.

    Args:
        path: the file.
        text: its content.
        packages: of the environment that will run it; None = not known.
        read: reads files that a ConfigMap holds.
        chosen: the user chose that environment.
        named: the user passed the file by name, so that any manifest counts.
    """
    starts = starts_jobs(text)
    if not (starts or named or _JUDGED.search(text)):
        return "", []
    try:
        documents = yaml_text.documents(text)
    except ValueError:
        return "", []
    containers, configs = _described(documents) if _DESCRIBES.search(text) else ([], [])
    described = {one.line: one for one in containers}
    parts: list[Part] = []
    told: set[int] = set()
    if starts:
        for before, command, holder in commands_of(documents):
            own = script_parts(path, command, packages, chosen=chosen)
            one = described.get(holder)
            for part in own:
                moved = dataclasses.replace(part, line=before + part.line)
                parts.append(moved)
                with_it = [*_of_launch(moved, one)] if one is not None and part.families else []
                parts += with_it
                if with_it:
                    told.add(holder)
    parts += _refused(one for line, one in described.items() if line not in told)
    for config in configs[:_MOST_FILES]:
        parts += (_moved(part, config.before) for part in read(config.name, config.text))
    return ("manifest" if parts or (named and (described or configs)) else ""), parts


def _described(documents: Sequence[Any]) -> tuple[list[Described], list[ConfigText]]:
    try:
        return read_manifest(documents)
    except ValueError:  # their commands are read all the same
        return [], []


def _moved(part: Part, before: int) -> Part:
    """A piece of a file that begins below another line than its first."""
    facts = list[Fact]()
    line = part.line + before
    for fact in part.facts:
        if not isinstance(fact, DsConfig):
            facts.append(fact)
            continue
        duplicates = {
            key: tuple(number + before for number in numbers)
            for key, numbers in fact.duplicates.items()
        }
        lines = {key: number + before for key, number in fact.lines.items()}
        facts.append(msgspec.structs.replace(fact, lines=lines, duplicates=duplicates))
        # the place of a syntax error counts from the first line of the config
        line = line + 1 if fact.parsed is None else 0
    return dataclasses.replace(part, facts=facts, line=line)


def _of_launch(part: Part, one: Described) -> Iterator[Part]:
    """A launch line, which then knows its container, and what is judged of the two together."""
    command = next((fact for fact in part.facts if isinstance(fact, LaunchCommand)), None)
    if command is None:
        return
    known = msgspec.structs.replace(command, env={**one.variables, **command.env})
    gpus, by = one.gpus or (None, "")
    part.facts = [known if fact is command else fact for fact in part.facts]
    part.run = msgspec.structs.replace(
        part.run, manifest=one.container, container_gpus=gpus, container_gpus_by=by
    )
    run = msgspec.structs.replace(part.run, container_ranks=_ranks(known, one))
    yield Part([known], ("container", "host"), line=part.line, run=run)


def _ranks(command: LaunchCommand, one: Described) -> int | None:
    """How many ranks a container starts, or an MPIJob starts in it; None = not known."""
    container = one.container
    gpus = one.gpus[0] if one.gpus else None
    launcher = command.inner or command.launcher
    if launcher not in COUNTING or container.workers is not None:
        return None
    if command.num_gpus is not None:
        return command.num_gpus
    by_gpus = launcher == "deepspeed" or command.options.get("nproc_per_node") in ("auto", "gpu")
    # an operator's own default is a rank for each GPU
    by_gpus = by_gpus or (container.ranks is None and "PET_NPROC_PER_NODE" in command.env)
    return gpus if by_gpus else container.ranks


def _refused(containers: Iterator[Described]) -> Iterator[Part]:
    """Containers that start something else; what Kubernetes refuses, it refuses all the same."""
    for one in containers:
        if one.container.refused:
            run = RunNeeds(quick=True, manifest=one.container)
            yield Part([LaunchCommand()], ("container",), line=one.line, run=run)
