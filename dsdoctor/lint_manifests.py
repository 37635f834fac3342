"""Containers of Kubernetes manifests and Compose files, as the pieces that are linted."""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

import msgspec

from dsdoctor import reading, yaml_text
from dsdoctor.api import LaunchCommand, Packages
from dsdoctor.lazy_regex import lazy
from dsdoctor.lint_launches import Part, script_parts
from dsdoctor.lint_variables import stated_variables
from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.config import DsConfig
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_tables import COUNTING
from dsdoctor.probes.manifest_jobs import ConfigText, Described, read_manifest
from dsdoctor.probes.shell_lines import starts_jobs
from dsdoctor.probes.yaml_commands import commands_of

#: Words without which a text describes no container of a job ...
_DESCRIBES = lazy("containers:|services:|ConfigMap|kind: List|kind: TrainJob")
#: ... and without which nothing is judged of a text that starts no job: a resource with a domain,
#: a job of an operator, a file in a ConfigMap, a variable of torch. Most manifests have none.
_JUDGED = lazy(
    r"(?<![\w.-])(?!(?:[\w-]+\.)*kubernetes\.io/)[\w-]+(?:\.[\w-]+)+/[\w.-]+[\"']?\s*:"
    r"|PyTorchJob|MPIJob|TrainJob|ConfigMap|\b(?:NCCL|TORCH|PYTORCH|CUDA|GLOO|DS)_[A-Z]"
)
#: An action of Helm: its objects, its functions, or a variable of its own (Helm 3 chart template
#: guide), and one of any engine.
_OF_HELM = lazy(
    r"\{\{-?\s*(?:\$[A-Za-z_]\w{0,60}\s*:?=|(?:\w{1,40}\s+){0,4}\(?\$?\.(?:Values|Chart|Release|Files"
    r"|Capabilities|Template)\b|(?:include|template|define)\s+\x22)"
)
_ACTION = lazy(r"\{\{.{0,300}\}\}|\{%.{0,300}%\}")
#: Bytes in which a file that is no text, or is in UTF-16, shows it.
_FIRST = 400
#: Files in a ConfigMap that may be read.
_MOST_FILES = 100
#: Characters of a file beside a manifest.
_LARGEST_FILE = 1 << 16
#: Lines below the beginning of a list in which one of its items is looked for.
_FARTHEST = 200

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
    rows = text.split("\n")
    if not (starts or named or _JUDGED.search(text)):
        return "", []
    try:
        documents = yaml_text.documents(text)
    except ValueError:
        reason = template_of(text)
        if named or not reason or not _DESCRIBES.search(text):
            return "", []
        return "manifest", [Part([], (), line=1, not_followed=f"the file {reason}")]
    file = functools.partial(_beside, path)
    parts: list[Part] = []
    containers, configs = list[Described](), list[ConfigText]()
    try:
        if _DESCRIBES.search(text):
            containers, configs = read_manifest(documents, file)
    except ValueError:  # their commands are read all the same
        if reason := template_of(text):
            parts.append(Part([], (), line=1, not_followed=f"the file {reason}"))
    described = {one.line: one for one in containers}
    if starts or any("$(" in row for row in rows):

        def fill(holder: int, words: str) -> str:
            return described[holder].fill(words) if holder in described else words

        for command in commands_of(documents, fill):
            one = described.get(command.holder)
            given = one.known if one is not None and command.for_shell else {}
            own = script_parts(path, command.text, packages, chosen=chosen, given=given)
            for part in own:
                moved = dataclasses.replace(part, line=command.before + part.line)
                parts.append(moved)
                parts += _of_launch(moved, one) if one is not None and part.families else ()
    parts += _refused(described.values())
    parts += _variables([one for one in described.values() if one.stated], rows)
    for config in configs[:_MOST_FILES]:
        parts += (_moved(part, config.before) for part in read(config.name, config.text))
    if len(configs) > _MOST_FILES:
        reason = f"{len(configs) - _MOST_FILES} more files of ConfigMaps were not read"
        reason += f" (limit: {_MOST_FILES})"
        parts.append(Part([], (), line=configs[_MOST_FILES].before, not_followed=reason))
    return ("manifest" if parts or (named and (described or configs)) else ""), parts


def template_of(text: str) -> str:
    """What a file that is no YAML is a template of; "" if it contains no action of an engine.

    >>> template_of("a: {{ .Values.gpus }}"), template_of("a: {{ gpus }}"), template_of("a: [")
    ('is a Helm template: run `helm template` and lint its output', \
'is a template (`{{ … }}`): fill it in and lint the result', '')
    """
    if _OF_HELM.search(text):
        return "is a Helm template: run `helm template` and lint its output"
    engine = _ACTION.search(text)
    return "is a template (`{{ … }}`): fill it in and lint the result" if engine else ""


def unread(name: str, data: bytes) -> str:
    """Why nothing could be recognized in a file; "" if it is just another file."""
    if not data.strip():
        return "is empty"
    if data.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in data[:_FIRST]:
        return "is in UTF-16, or is no text; expected UTF-8"
    if not name.lower().endswith((".yaml", ".yml")):
        return ""
    text = data.decode("utf-8", "replace")
    try:
        yaml_text.values(yaml_text.documents(text))
    except yaml_text.NotYamlError as error:
        return template_of(text) or f"is not YAML: {error}"
    except ValueError as error:
        return f"cannot be read: {error}"
    return ""


def _beside(path: Path, name: str) -> str:
    """The text of a small file in the folder of a manifest, or below it; "" = there is none."""
    parts = Path(name).parts
    if not parts or Path(name).is_absolute() or ".." in parts:
        return ""
    try:
        return reading.read(path.parent / name, size=_LARGEST_FILE).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""


def _variables(containers: Sequence[Described], rows: Sequence[str]) -> Iterator[Part]:
    """The environments of containers, each variable judged where the file states it."""
    environments = (one.stated for one in containers)
    return stated_variables(
        "manifest", environments, rows, lambda name, start: _line_of(name, start, rows)
    )


def _line_of(name: str, start: int, rows: Sequence[str]) -> int:
    """The line of a variable of which it is known where the list begins that contains it."""
    for number in range(start, min(start + _FARTHEST, len(rows) + 1)):
        if re.search(rf"(?<![\w-]){re.escape(name)}(?![\w-])", rows[number - 1]):
            return number
    return start


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


def _refused(containers: Iterable[Described]) -> Iterator[Part]:
    """What Kubernetes or an operator refuses, whatever the container starts."""
    for one in containers:
        if one.container.refused:
            run = RunNeeds(quick=True, manifest=one.container)
            yield Part([], ("container",), line=one.line, run=run)
