"""A typed `pip install torch==…`, and Python below it that imports what was installed.

Only one version may be installed in the text: of several, nobody says which stayed. PyPI's wheels
are for one CUDA; where the command names an index, the version alone is stated. conda's command
names the CUDA of the build itself (`cudatoolkit=10.2`, `pytorch-cuda=12.1`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import passages, says_own
from dsdoctor.paste.pip_show import PYPI_CUDA
from dsdoctor.paste.reader import Reader, state_cuda, state_torch
from dsdoctor.paste.shell_passages import typed_at
from dsdoctor.paste.statements import Statements

_INSTALL = re.compile(
    r"(?:sudo )?(?:python[\d.]* -m )?(?:uv )?pip[\d.]* install (?P<rest>.{0,300}?\btorch={2,3}"
    r"(?P<version>\d+\.\d+\.\d+(?:\+\w{1,12})?)(?=\s|$).{0,300})"
)
#: Also of a build that has the CUDA in its name, which conda prefers to another one.
_CONDA = re.compile(
    r"(?:sudo )?(?:conda|mamba|micromamba) install (?P<rest>(?:\S{1,80} ){0,20}?"
    r"pytorch(?:={1,2}(?P<version>\d+\.\d+\.\d+))?(?= |$)(?: \S{1,80}){0,20})$"
)
_CONDA_CUDA = re.compile(r" (?:cudatoolkit|pytorch-cuda)={1,2}(?P<cuda>\d{1,2}\.\d)\b")
#: What somebody did who tells of a command.
_DID = re.compile(
    r"(?i)\b(?:I|we)(?:'ve| have| had)?(?: also| first| then)? installed\b|\bhow I installed\b"
)
_INDEX = re.compile(r"(?:^|\s)(?:-i|-f|--index-url|--extra-index-url|--find-links)\b|https?://")
_IMPORTED = re.compile(r"\s*(?:>>> ?)?import torch\b|.{0,80}\bpython[\d.]* -c ['\"]import torch\b")
#: The wheels for Linux before those of `pip show`: pytorch.org/get-started/previous-versions; 1.3
#: as in pytorch/pytorch#30071 of 2019-11-19, where driver 410.48 is too old for it.
_OLDER = {
    "1.2": "10.0", "1.3": "10.1", "1.4": "10.1", "1.5": "10.2",
    "1.6": "10.2", "1.7": "10.2", "1.8": "10.2", "1.9": "10.2", "1.10": "10.2", "1.11": "10.2",
    "1.12": "10.2",
}  # fmt: skip


def _read(lines: Sequence[Line], into: Statements) -> None:
    if into.states(TorchBuild, "version") or into.states(TorchBuild, "cuda"):
        return
    found = [
        (install, line, place)
        for place, line in enumerate(lines)
        if (install := _INSTALL.match(typed_at(line))) is not None
    ]
    if not found:
        _conda(lines, into)
    if len({install["version"] for install, _, _ in found}) != 1:
        return
    install, line, place = found[-1]
    if not any(_IMPORTED.match(below.text) for below in lines[place + 1 :]):
        return
    version = install["version"]
    state_torch(version, line, into)
    release = ".".join(version.split(".")[:2])
    cuda = (_OLDER | PYPI_CUDA).get(release)
    if cuda and "+" not in version and not _INDEX.search(install["rest"]):
        state_cuda(cuda, line, into)


def _conda(lines: Sequence[Line], into: Statements) -> None:
    """A single `conda install pytorch` that was typed, or that its writer says to have run."""
    found: list[tuple[str | None, str, Line]] = []
    for passage in passages(lines):
        told = passage.fenced and (_DID.search(passage.lead) or says_own(passage.lead))
        for line in passage.lines:
            install = _CONDA.match(typed_at(line) or (line.text.strip() if told else ""))
            build = _CONDA_CUDA.search(install["rest"]) if install else None
            if install and build:
                found.append((install["version"], build["cuda"], line))
    if len({(version, cuda) for version, cuda, _ in found}) != 1:
        return
    version, cuda, line = found[-1]
    below = [other for other in lines if other.number > line.number]
    if not any(_IMPORTED.match(other.text) for other in below):
        return
    if version:
        state_torch(version, line, into)
    state_cuda(cuda, line, into)


READER = Reader("pip install", _read)
