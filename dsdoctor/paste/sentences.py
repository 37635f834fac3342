"""Versions in a sentence or a list that people write: `torch 2.1.0+cu121, driver 470.57`.

Only unambiguous words count: a torch with its build, a driver by name and number. A version next to
words of trying, comparing or requiring is not the machine's, and a product with two versions in the
text counts as not stated. A CPU build counts only if the text mentions a driver or a GPU: without
them it may be intended.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.python import DeepSpeedInstall, TorchBuild
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_deepspeed, state_torch
from dsdoctor.paste.statements import Statements

_BETWEEN = r"(?:[ _-]?version)?\s*(?:[:=]{1,2}|is)?\s*[`'\"v(]{0,2}"
_TORCH = re.compile(
    rf"(?i)\b(?:torch|pytorch){_BETWEEN}(?P<version>\d\.\d{{1,2}}\.\d\+(?:cu\d{{2,3}}|cpu|rocm[\d.]{{3,5}}))\b"
)
_DRIVER = re.compile(
    rf"(?i)\bdriver{_BETWEEN}(?P<version>[3-6]\d\d\.\d{{2,3}}(?:\.\d{{2}})?)(?![\d.]*\d|\.x)"
)
_DEEPSPEED = re.compile(
    rf"(?i)\bdeepspeed{_BETWEEN}(?P<version>0\.\d{{1,2}}\.\d{{1,2}})(?![\d.]*\d)"
)
#: Words of a line that is about versions other than the machine's.
_OTHER = re.compile(
    r"(?i)\b(?:tr(?:y|ied|ying)|up(?:grad|dat)\w*|down\s?grad\w*|instead|switch\w*|chang\w*|install|"
    r"reinstall\w*|works?|worked|working|fix\w*|solv\w*|resolv\w*|requir\w*|needs?|supports?|minimum|"
    r"least|older|newer|later|latest|previous\w*|before|after|if|should|would|could|above|below|vs|"
    r"versus|compatib\w*|release\w*|recommend\w*|between|or|not|without|same|other|another|also|than|"
    r"from|until|since|built|compiled|you have|pip3?|conda|apt|uv|docker|whl|https?)\b"
    r"|[<>?]|[=]=.*[=]=|→|->|with CUDA \d{4}\b"  # of what xFormers was built for
)
#: A longer line is a log, a list of requirements or a paragraph.
_LONGEST = 160


def _read(lines: Sequence[Line], into: Statements) -> None:
    for pattern, kind, field in (
        (_DRIVER, Nvml, "driver_version"),
        (_TORCH, TorchBuild, "version"),
        (_DEEPSPEED, DeepSpeedInstall, "version"),
    ):
        told = [(found["version"], line) for line in lines for found in pattern.finditer(line.text)]
        if into.states(kind, field) or len({version for version, _ in told}) != 1:
            continue
        version, line = told[0]
        if any(_OTHER.search(each.text) or len(each.text) > _LONGEST for _, each in told):
            continue
        if version.endswith("+cpu") and not _mentions_a_gpu(into):
            continue
        if pattern is _TORCH:
            state_torch(version, line, into)
        elif pattern is _DEEPSPEED:
            state_deepspeed(version, line, into)
        else:  # that does not say whether the driver responds
            into.state(Nvml, "driver_version", version, line)


def _mentions_a_gpu(into: Statements) -> bool:
    return into.states(Nvml, "driver_version") or into.states(Gpus, "gpus.0.index")


READER = Reader("versions in a sentence", _read)
