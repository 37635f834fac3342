"""Dockerfiles: the image that a job's image is built from, what it installs and sets, its command.

Only the last stage counts, with the stages that it is built from. An image whose name contains a
variable is unknown, as is a version that a later step may have changed.

Sources: the Dockerfile reference of Docker 24 to 28; the tags of `nvidia/cuda` (`base`, `runtime`,
`devel`: only the last has nvcc) and of `pytorch/pytorch` (`runtime`, `devel`) on Docker Hub. Read
2026-11-28.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import Packages, TorchBuild
from dsdoctor.model.facts.toolchain import CudaToolkits
from dsdoctor.paste.collect_env import state_nvcc
from dsdoctor.paste.container_files import Container, state_container
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage, passages
from dsdoctor.paste.reader import Reader, state_cuda, state_package
from dsdoctor.paste.statements import Statements

_NAMES = (
    "ADD|ARG|CMD|COPY|ENTRYPOINT|ENV|EXPOSE|FROM|HEALTHCHECK|LABEL|MAINTAINER|ONBUILD|RUN|SHELL|STOPSIGNAL|USER"
    "|VOLUME|WORKDIR"
)
_STEP = re.compile(rf"\s*(?P<name>{_NAMES})\s+(?P<rest>\S.*)$")
_FIRST = re.compile(r"\s*(?:FROM\s+\S+(?:\s+(?:AS|as)\s+\S+)?|ARG\s+\w+=\S*)\s*$")
_FROM = re.compile(r"(?:--platform=\S+\s+)?(?P<image>\S+)(?:\s+[Aa][Ss]\s+(?P<alias>\S+))?\s*$")
_HEREDOC = re.compile(r"<<-?['\"]?(?P<end>[A-Za-z_]\w{0,30})['\"]?")
_CUDA_IMAGE = re.compile(
    r"(?:(?:docker\.io|nvcr\.io)/)?nvidia/cuda:(?P<cuda>\d{1,2}\.\d{1,2})(?:\.\d{1,2})?-"
    r"(?:cudnn\d{0,2}-)?(?P<kind>base|runtime|devel)-(?P<system>ubuntu|rockylinux|ubi|centos)"
    r"(?P<release>\d[\d.]{0,5})$"
)
_TORCH_IMAGE = re.compile(
    r"(?:docker\.io/)?pytorch/pytorch:(?P<torch>\d\.\d{1,2}\.\d{1,2})-cuda(?P<cuda>\d{1,2}\.\d{1,2})-"
    r"cudnn\d{1,2}-(?P<kind>runtime|devel)$"
)
#: What may bring nvcc to an image without it.
_BRINGS_NVCC = re.compile(r"(?i)cuda|nvcc|conda|mamba|nvhpc|\.run\b|--from=")
_PIP = re.compile(
    r"(?:^|[\s;&|])(?:uv\s+)?(?:\S*python[\d.]*\s+-m\s+)?pip[\d.]*\s+install\s+(?P<rest>[^;&|]*)"
)
_PIN = re.compile(
    r"(?P<name>[A-Za-z][\w.-]{0,60})(?:\[[\w,-]{1,60}\])?==(?P<version>\d[\w.+!-]{0,60})$"
)
_INDEX = re.compile(
    r"https?://download\.pytorch\.org/whl/(?:cu(?P<major>1\d)(?P<minor>\d)|(?P<cpu>cpu))/?$"
)
#: Options of `pip install` that take a word, none of which is a package.
_VALUED = frozenset(
    {"-i", "--index-url", "--extra-index-url", "-f", "--find-links", "-t", "--target", "--prefix",
     "--trusted-host", "--root", "--timeout", "--retries", "--proxy", "--python", "--progress-bar"}
)  # fmt: skip
#: Packages that a list of requirements or another package may install in another version.
_MOVES_TORCH = re.compile(r"(?i)(?:torch\w*|vllm|xformers|sglang|lmdeploy|unsloth)(?=[\[<>=~!]|$)")
_MOST_STEPS = 500


class Step(NamedTuple):
    """An instruction.

    Attributes:
        line: its first line.
        name: `RUN`, `ENV`, …
        text: what follows it, its lines joined.
    """

    line: Line
    name: str
    text: str


class Dockerfile(NamedTuple):
    """A whole Dockerfile.

    Attributes:
        lines: its lines.
        image: what its last stage is built from.
        base: the instruction that says so.
        steps: those of the last stage and of the stages that it is built from, in order.
    """

    lines: tuple[Line, ...]
    image: str
    base: Step
    steps: tuple[Step, ...]


def dockerfiles_of(passage: Passage) -> Iterator[Dockerfile]:
    """The Dockerfile in a passage, if it is whole."""
    if passage.fenced and not passage.closed:
        return
    lines = passage.lines
    start = next((at for at, line in enumerate(lines) if _FIRST.match(line.text)), len(lines))
    steps, end = _steps(lines, start)
    cut = not passage.fenced and end == len(lines) and lines[-1:] and lines[-1].text.strip()
    if cut or len(steps) < 2 or not any(step.name == "FROM" for step in steps):  # noqa: PLR2004
        return
    found = _last_stage(steps)
    if found is not None:
        base, image, kept = found
        yield Dockerfile(tuple(lines[start:end]), image, base, tuple(kept))


def _steps(lines: Sequence[Line], start: int) -> tuple[list[Step], int]:
    """The instructions from a line on, and where they end."""
    steps: list[Step] = []
    place = start
    while place < len(lines) and len(steps) < _MOST_STEPS:
        line = lines[place]
        if not line.text.strip() or line.text.lstrip().startswith("#"):
            place += 1
            continue
        found = _STEP.match(line.text)
        if found is None:
            break
        parts = [found["rest"]]
        place += 1
        while parts[-1].endswith("\\") and place < len(lines):
            parts[-1] = parts[-1][:-1]
            text = lines[place].text
            parts.append("\\" if text.lstrip().startswith("#") or not text.strip() else text)
            place += 1
        if parts[-1].endswith("\\"):  # the rest is missing
            return steps, len(lines)
        heredoc = _HEREDOC.search(parts[0]) if found["name"] in ("RUN", "COPY") else None
        while heredoc and place < len(lines):
            parts.append(lines[place].text)
            place += 1
            if parts[-1].strip() == heredoc["end"]:
                break
        steps.append(Step(line, found["name"], (" ; " if heredoc else " ").join(parts)))
    return steps, place


def _last_stage(steps: Sequence[Step]) -> tuple[Step, str, list[Step]] | None:
    """The image of the last stage, the instruction that contains it, and its steps."""
    stages: dict[str, tuple[Step, str, list[Step]]] = {}
    current: tuple[Step, str, list[Step]] | None = None
    for step in steps:
        if step.name != "FROM":
            if current:
                current[2].append(step)
            continue
        found = _FROM.match(step.text)
        if found is None:
            return None
        before = stages.get(found["image"].lower())
        current = (before[0], before[1], list(before[2])) if before else (step, found["image"], [])
        stages[(found["alias"] or f"\0{len(stages)}").lower()] = current
    return current


def container_of(found: Dockerfile) -> Container:
    """What a container of the image is given, and its command."""
    variables: dict[str, str] = {}
    entry: tuple[str, ...] = ()
    command: tuple[str, ...] = ()
    for step in found.steps:
        if step.name == "ENV":
            variables |= _variables(step.text)
        elif step.name == "ENTRYPOINT":
            entry, command = _words(step.text), ()
        elif step.name == "CMD":
            command = _words(step.text)
    return Container(found.lines, (*entry, *command), variables, None, {})


def _variables(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError:
        return {}
    if words and "=" not in words[0]:  # the old form: `ENV NAME value`
        return {words[0]: " ".join(words[1:])} if len(words) > 1 else {}
    rows = (word.partition("=") for word in words)
    return {name: value for name, equals, value in rows if equals}


def _words(text: str) -> tuple[str, ...]:
    """A command: a JSON array of words, or a line of sh."""
    try:
        words = json.loads(text)
    except ValueError:
        return ("/bin/sh", "-c", text.strip())
    return tuple(map(str, words)) if isinstance(words, list) else ()


# ---- what it states ----------------------------------------------------------------------------


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = [file for passage in passages(lines) for file in dockerfiles_of(passage)]
    if len(found) != 1:
        return
    file = found[0]
    state_container([container_of(file)], into)
    runs = [step for step in file.steps if step.name in ("RUN", "COPY", "ADD")]
    pins = _pinned(runs)
    _state_image(file, runs, "torch" in pins or _torch_may_move(runs), into)
    for name, (version, index, line) in pins.items():
        if into.states(Packages, f"packages.{name}") or (name == "torch" and _told(into)):
            continue
        state_package(name, version, line, into)
        if name == "torch" and index and "+" not in version:
            _state_index(index, line, into)


def _told(into: Statements) -> bool:
    """Whether a tool reported the torch that is installed."""
    return into.states(TorchBuild, "version")


def _state_image(file: Dockerfile, runs: Sequence[Step], moved: bool, into: Statements) -> None:
    line = file.base.line
    cuda, torch = _CUDA_IMAGE.match(file.image), _TORCH_IMAGE.match(file.image)
    bare = not any(_BRINGS_NVCC.search(step.text) for step in runs)
    known = into.states(CudaToolkits, "chosen")
    if cuda:
        if cuda["system"] in ("ubuntu", "rockylinux", "centos"):
            name = {"rockylinux": "rocky"}.get(cuda["system"], cuda["system"])
            if not into.states(OsInfo, "distribution"):
                into.state(OsInfo, "distribution", f"{name} {cuda['release']}", line)
        if cuda["kind"] == "devel":
            state_nvcc(cuda["cuda"], line, into)
        elif bare and not known:  # the folder of the toolkit, without its programs
            into.state(CudaToolkits, "chosen", 0, line)
            for field in ("version", "nvcc"):
                into.state(CudaToolkits, f"found.0.{field}", None, line)
            into.state(CudaToolkits, "cuda_home_missing", None, line)
    elif torch:
        if not moved and not _told(into):
            state_package("torch", torch["torch"], line, into)
            state_cuda(torch["cuda"], line, into)
        if torch["kind"] == "devel":
            state_nvcc(torch["cuda"], line, into)
        elif bare and not known:
            into.state(CudaToolkits, "chosen", None, line)
            into.state(CudaToolkits, "found[]", None, line)
            into.state(CudaToolkits, "cuda_home_missing", None, line)


def _state_index(index: str, line: Line, into: Statements) -> None:
    """States the CUDA version of torch's own index, whose builds have it in their version."""
    found = _INDEX.match(index)
    if found is None:
        return
    if found["cpu"]:
        into.state(TorchBuild, "cuda", None, line)
        into.state(TorchBuild, "hip", None, line)
    else:
        state_cuda(f"{found['major']}.{found['minor']}", line, into)


def _installs(steps: Sequence[Step]) -> Iterator[tuple[list[str], str, Line]]:
    """The requirements of each `pip install`, the index that it names, and its line."""
    for step in steps:
        for found in _PIP.finditer(step.text) if step.name == "RUN" else ():
            try:
                words = shlex.split(found["rest"])
            except ValueError:
                continue
            wanted, index = [], ""
            for before, word in zip(("", *words), words, strict=False):
                name, equals, value = word.partition("=")
                if before.endswith("index-url") and before.startswith("--"):
                    index = word
                elif equals and name in ("--index-url", "--extra-index-url"):
                    index = value
                elif before == "-i":
                    index = word
                elif before in ("-r", "--requirement", "-e", "--editable"):
                    wanted.append(f"{before} {word}")
                elif not word.startswith("-") and before not in _VALUED:
                    wanted.append(word)
            yield wanted, index, step.line


def _pinned(steps: Sequence[Step]) -> dict[str, tuple[str, str, Line]]:
    """Versions that the image has for certain: the last pin, if nothing later may change it."""
    pins: dict[str, tuple[str, str, Line]] = {}
    for wanted, index, line in _installs(steps):
        plain = [word for word in wanted if not _PIN.match(word)]
        if any(word.startswith(("-", ".", "git+", "http")) or "/" in word for word in plain):
            pins.clear()  # what they require is not known
        for word in wanted:
            pin = _PIN.match(word)
            name = re.sub(r"[-_.]+", "-", re.split(r"[\[<>=~!@ ]", word)[0]).lower()
            if pin:
                pins[name] = (pin["version"], index, line)
            elif re.search(r"[<>~!@]", word):
                pins.pop(name, None)
        moves = {word for word in plain if _MOVES_TORCH.match(word)}
        if moves and not any(_PIN.match(word) and word.startswith("torch==") for word in wanted):
            pins.pop("torch", None)
    if any(re.search(r"\b(?:conda|mamba|micromamba) install\b", step.text) for step in steps):
        pins.clear()
    return pins


def _torch_may_move(steps: Sequence[Step]) -> bool:
    """Whether a step may install another torch than that of the base image."""
    for wanted, _, _ in _installs(steps):
        for word in wanted:
            if _MOVES_TORCH.match(word) or word.startswith(("-", ".", "git+", "http")):
                return True
    return any(re.search(r"\b(?:conda|mamba|micromamba) install\b", step.text) for step in steps)


READER = Reader("a Dockerfile", _read)
