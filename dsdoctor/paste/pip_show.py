"""`pip show`: a distribution, what it requires, and the Python that it is installed for.

Source: pip/_internal/commands/show.py of pip 9 to 26, read 2026-11-22.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import Patient, TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_cuda, state_package
from dsdoctor.paste.statements import Statements

_NAME = re.compile(r"\s*Name: (?P<name>[A-Za-z][\w.-]{0,60})$")
_VERSION = re.compile(r"\s*Version: (?P<version>\d[\w.+!-]{0,60})$")
_FIELD = re.compile(r"\s*(?P<key>[A-Z][A-Za-z-]{2,30}): ?(?P<value>.*)$")
_PYTHON = re.compile(r"[/\\](?:python|Python)(?P<version>3\.\d{1,2})[/\\](?:site|dist)-packages$")
_CUDA = re.compile(r"\bnvidia-(?:cublas|cuda-runtime)-cu(?P<major>\d\d)\b")
#: Lines of the longest such block, with the full text of a license.
_MOST = 60
#: The CUDA version of torch's wheels on PyPI (METADATA of each release, read 2026-11-28).
PYPI_CUDA = {
    "1.13": "11.7", "2.0": "11.7", "2.1": "12.1", "2.2": "12.1", "2.3": "12.1", "2.4": "12.1",
    "2.5": "12.4", "2.6": "12.4", "2.7": "12.6", "2.8": "12.8", "2.9": "12.8", "2.10": "12.8",
    "2.11": "13.0", "2.12": "13.0", "2.13": "13.0", "2.14": "13.0", "2.15": "13.2",
}  # fmt: skip


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines[:-1]):
        name, version = _NAME.match(line.text), _VERSION.match(lines[place + 1].text)
        if name and version:
            into.recognized()
            state_package(name["name"], version["version"], lines[place + 1], into)
            _fields(lines[place + 2 : place + 2 + _MOST], name["name"], version["version"], into)


def _fields(lines: Sequence[Line], name: str, version: str, into: Statements) -> None:
    for line in lines:
        field = _FIELD.match(line.text)
        if line.fence or _NAME.match(line.text):
            return
        if field is None:
            continue
        if field["key"] == "Location":
            python = _PYTHON.search(field["value"].rstrip())
            if python and not into.states(Patient, "version"):
                into.state(Patient, "version", python["version"], line)
        elif field["key"] == "Requires" and name == "torch" and "+" not in version:
            _built(version, field["value"], line, into)


def _built(version: str, requires: str, line: Line, into: Statements) -> None:
    """States torch's CUDA: `Requires` has its major version, and PyPI one build of each."""
    found = _CUDA.search(requires)
    cuda = PYPI_CUDA.get(".".join(version.split(".")[:2]))
    fits = found and cuda and cuda.split(".")[0] == found["major"]
    if cuda and fits and not into.states(TorchBuild, "cuda"):
        state_cuda(cuda, line, into)


READER = Reader("pip show", _read)
