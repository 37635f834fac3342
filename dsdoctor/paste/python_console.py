"""Expressions about torch that people type into Python, and their results.

Only the output of Python itself counts: `torch.cuda.is_available()` and, on its own line below,
`False`; or what a script in the text prints after a text of its own, `print("GPU:", …)` and below
it `GPU: False`. A sentence about it is not output.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.python import TorchLive
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_cuda, state_cuda_available, state_gpu, state_torch
from dsdoctor.paste.statements import Statements

_EXPRESSION = (
    r"torch\.(?P<what>cuda\.is_available\(\)|__version__|version\.cuda"
    r"|cuda\.get_arch_list\(\)|cuda\.get_device_(?:name|capability)\((?:0|device=0)?\))"
)
#: One `python -c` that prints several values.
_SEVERAL = re.compile(
    r".{0,200}\bpython[\d.]{0,5} -c ['\"]import torch; ?print ?\((?P<asked>[^'\"]{1,300})\)"
    r" ?['\"]\s*$"
)
#: A part of its `print(a, b, c)`; each prints one word.
_PART = re.compile(r"torch\.(?P<what>cuda\.is_available\(\)|__version__|version\.cuda)$")
#: On a line of its own (`>>>` was removed like quoting; backticks also occur within a block), or as
#: the argument of `python -c`.
_ASKED = (
    re.compile(
        rf"`?(?:In ?\[\d{{1,4}}\]: ?)?(?:import torch ?; ?)?(?:print ?\( ?)?{_EXPRESSION} ?\)?`?\s*"
        r"(?:#.*)?$"
    ),
    re.compile(
        rf".{{0,200}}\bpython[\d.]{{0,5}} -c (?!.*print.*print)"
        rf".*print ?\({_EXPRESSION}\) ?;?['\"];?\s*$"
    ),
)
#: `print("text", expression)` or `print(f"text {expression}")` on a line of a script.
_LABELLED = tuple(
    re.compile(rf"print ?\({form}\)\s*(?:#.*)?$")
    for form in (
        rf"(?P<quote>['\"])(?P<text>[^'\"{{}}]{{2,60}})(?P=quote), ?{_EXPRESSION}",
        rf"f(?P<quote>['\"])(?P<text>[^'\"{{}}]{{2,60}}?) ?\{{{_EXPRESSION}\}}(?P=quote)",
    )
)
#: Lines between the expression and its result.
_NOISE = re.compile(
    r"\s*$|.*Warning: |\s*(?:return torch\._C|warnings\.warn|\^|\(Triggered )|.*\.py:\d+: |\s*```"
)
#: Lines of torch's longest warning.
_FARTHEST = 8
_OUTPUT = r"(?:Out ?\[\d{1,4}\]: ?)?"


def _available(value: str, line: Line, into: Statements) -> None:
    found = re.match(rf"{_OUTPUT}(?:returns? )?(True|False)[`.]?$", value)
    if found:
        state_cuda_available(found[1], line, into)


def _version(value: str, line: Line, into: Statements) -> None:
    found = re.match(rf"{_OUTPUT}['\"]?(\d\.\d{{1,2}}\.\d[\w.+]{{0,40}})['\"]?$", value)
    if found:
        state_torch(found[1], line, into)


def _cuda(value: str, line: Line, into: Statements) -> None:
    found = re.match(rf"{_OUTPUT}['\"]?(\d{{1,2}}\.\d)['\"]?$", value)
    if found:
        state_cuda(found[1], line, into)


def _name(value: str, line: Line, into: Statements) -> None:
    found = re.match(
        rf"{_OUTPUT}['\"]?((?:NVIDIA|Tesla|GeForce|Quadro|TITAN|GRID)[\w ./-]{{2,60}}?)['\"]?$",
        value,
    )
    if found:
        state_gpu(0, found[1], line, into)


def _architectures(value: str, line: Line, into: Statements) -> None:
    found = re.match(rf"{_OUTPUT}\[((?:'(?:sm|compute|gfx)_?\w{{2,6}}'(?:, )?){{1,40}})\]$", value)
    if found and "gfx" not in found[1]:
        names = tuple(re.findall(r"'(\w+)'", found[1]))
        into.state(TorchLive, "arch_list", names, line)
        into.state(TorchLive, "arch_source", "get_arch_list", line)


def _capability(value: str, line: Line, into: Statements) -> None:
    found = re.match(rf"{_OUTPUT}\((\d{{1,2}}), (\d)\)$", value)
    if found:
        into.state(Gpus, "gpus.0.index", 0, line)
        into.state(Gpus, "gpus.0.cc_major", int(found[1]), line)
        into.state(Gpus, "gpus.0.cc_minor", int(found[2]), line)


_ANSWERS: dict[str, Callable[[str, Line, Statements], None]] = {
    "cuda.is_available()": _available,
    "__version__": _version,
    "version.cuda": _cuda,
    "cuda.get_arch_list()": _architectures,
}


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        if "torch." not in line.text:
            continue
        labelled = next(filter(None, (form.search(line.text) for form in _LABELLED)), None)
        if labelled:
            _printed(labelled, lines[place + 1 :], into)
            continue
        several = _SEVERAL.match(line.text)
        if several and "," in several["asked"]:
            _answers(several["asked"].split(","), lines[place + 1 : place + 1 + _FARTHEST], into)
            continue
        found = next(filter(None, (form.match(line.text) for form in _ASKED)), None)
        if found is None:
            continue
        below = lines[place + 1 : place + 1 + _FARTHEST]
        answer = next((other for other in below if not _NOISE.match(other.text)), None)
        if answer is not None:
            what = found["what"]
            other = _capability if "capability" in what else _name
            _ANSWERS.get(what, other)(answer.text.strip(), answer, into)


def _printed(asked: re.Match[str], below: Sequence[Line], into: Statements) -> None:
    """What a script printed after its own text, if it printed that once."""
    told = [line for line in below if line.text.strip().startswith(f"{asked['text']} ")]
    if len(told) == 1 and asked["what"] in _ANSWERS:
        value = told[0].text.strip().removeprefix(asked["text"]).strip()
        _ANSWERS[asked["what"]](value, told[0], into)


def _answers(asked: Sequence[str], below: Sequence[Line], into: Statements) -> None:
    """One `print` of several values, which have no blanks: a word for each, in order."""
    answer = next((line for line in below if not _NOISE.match(line.text)), None)
    parts = [_PART.match(part.strip()) for part in asked]
    words = answer.text.split() if answer else []
    if answer is None or None in parts or len(words) != len(parts):
        return
    for part, word in zip(parts, words, strict=True):
        if part is not None:
            _ANSWERS[part["what"]](word, answer, into)


READER = Reader("Python", _read)
