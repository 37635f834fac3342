"""What a shell answers about its variables: `echo $NAME`, `env`, `printenv`, `env | grep NCCL`.

A line `export NAME=VALUE` is not read: as often it is what somebody was advised to try.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.model.facts.machine import Environment
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_NAMES = r"(?:CUDA|NCCL|TORCH|PYTORCH|SLURM|LD|DS|GLOO|HIP|ROCR)_[A-Z0-9_]{1,50}"
#: At a prompt, or as the whole line.
_PROMPT = r"(?:^|.{0,80}[$#%>❯]\s)\s*"
_ECHO = re.compile(rf"{_PROMPT}echo \"?\$\{{?(?P<name>{_NAMES})\}}?\"?\s*$")
_LISTING = re.compile(rf"{_PROMPT}(?:env|printenv|set)\s*(?:\|\s*(?:e|f)?grep\s[^|]{{1,80}})?$")
_PRINTENV = re.compile(rf"{_PROMPT}printenv (?P<name>{_NAMES})\s*$")
_SET = re.compile(rf"\s*(?P<name>{_NAMES})=(?P<value>[^\s=]{{0,400}})\s*$")
_ANY = re.compile(r"\s*[A-Za-z_]\w{0,60}=")
#: An answer is a path, a list, a number or a word, never a sentence or the next command.
_VALUE = re.compile(r"\s*(?P<value>[\w./,:+^=@-]{1,400})\s*$")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        below = lines[place + 1 : place + 2]
        asked = _ECHO.match(line.text) or _PRINTENV.match(line.text)
        if asked and below:
            answer = _VALUE.match(below[0].text)
            if answer and not below[0].fence:
                into.state(Environment, f"variables.{asked['name']}", answer["value"], below[0])
        elif _LISTING.match(line.text):
            _listed(lines, place + 1, into)


def _listed(lines: Sequence[Line], place: int, into: Statements) -> None:
    for line in lines[place:]:
        if line.fence or not _ANY.match(line.text):
            return
        found = _SET.match(line.text)
        if found:
            into.state(Environment, f"variables.{found['name']}", found["value"], line)


READER = Reader("env", _read)
