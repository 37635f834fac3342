"""A typed `pip install torch==…`, and Python below it that imports what was installed.

Only one version may be installed in the text: of several, nobody says which stayed. PyPI's wheels
are for one CUDA; where the command names an index, the version alone is stated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.pip_show import PYPI_CUDA
from dsdoctor.paste.reader import Reader, state_cuda, state_torch
from dsdoctor.paste.shell_passages import typed_at
from dsdoctor.paste.statements import Statements

_INSTALL = re.compile(
    r"(?:sudo )?(?:python[\d.]* -m )?(?:uv )?pip[\d.]* install (?P<rest>.{0,300}?\btorch={2,3}"
    r"(?P<version>\d+\.\d+\.\d+(?:\+\w{1,12})?)(?=\s|$).{0,300})"
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


READER = Reader("pip install", _read)
