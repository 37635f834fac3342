"""Versions that somebody asked Python or pip for: `python --version`, `deepspeed.__version__`.

Only the answer counts: the line below the question, which contains a version and nothing else.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence

from dsdoctor.model.facts.python import Packages, Patient
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_package, state_python
from dsdoctor.paste.statements import Statements

_PROMPT = r"(?:^|.{0,80}[$#%>❯!]\s?)\s*"
_PYTHON = re.compile(rf"{_PROMPT}python[\d.]{{0,5}}\s+(?:-V|--version)\s*$")
_ANSWER = re.compile(r"\s*Python (?P<version>3\.\d{1,2}\.\d{1,2}\S{0,10})\s*$")
#: `>>>` was removed like quoting.
_NAMES = (
    r"deepspeed|transformers|accelerate|peft|trl|datasets|bitsandbytes|flash_attn|triton|numpy|vllm"
)
_MODULE = re.compile(
    rf"(?:In ?\[\d{{1,4}}\]: ?)?(?:import \w+ ?; ?)?(?:print ?\( ?)?"
    rf"(?P<name>{_NAMES})\.__version__ ?\)?\s*$"
    rf"|{_PROMPT}python[\d.]{{0,5}} -c ['\"]import (?P<asked>{_NAMES}) ?; ?"
    r"print ?\((?P=asked)\.__version__\)['\"]\s*$"
)
_VERSION = re.compile(
    r"(?:Out ?\[\d{1,4}\]: ?)?['\"]?(?P<version>\d{1,2}\.\d{1,3}[\w.+]{0,40})['\"]?$"
)
_SHOW = re.compile(
    rf"{_PROMPT}pip[\d.]{{0,5}} show (?P<name>[A-Za-z][\w-]{{1,60}})\s*\|\s*grep .{{0,20}}Version"
)
_FIELD = re.compile(r"\s*Version: (?P<version>\d[\w.+!-]{0,60})$")


def _read(lines: Sequence[Line], into: Statements) -> None:
    for line, below in itertools.pairwise(lines):
        python = _ANSWER.match(below.text) if _PYTHON.match(line.text) else None
        if python and not into.states(Patient, "version"):
            state_python(python["version"], below, into)
        asked, shown = _MODULE.match(line.text), _SHOW.match(line.text)
        if asked is None and shown is None:
            continue
        found = (_VERSION if asked else _FIELD).match(below.text.strip())
        name = (asked["name"] or asked["asked"]) if asked else shown["name"] if shown else ""
        key = name.replace("_", "-").lower()
        if found and not into.states(Packages, f"packages.{key}"):
            state_package(key, found["version"], below, into)


READER = Reader("Python's and pip's answers", _read)
