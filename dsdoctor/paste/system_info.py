"""What people write of their system: the list of an issue's template, versions in a row.

`- Python version: 3.10`, `GPU count and types: 2x A100`, `torch 2.1.0+cu118, deepspeed 0.12.3`. One
such line may be a sentence about something else; two of different products, next to each other and
without another word, are a list. What a tool prints is believed before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import OsInfo
from dsdoctor.model.facts.python import DeepSpeedInstall, Packages, Patient, TorchBuild
from dsdoctor.model.product_names import products_named
from dsdoctor.model.products import PRODUCTS
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import passages
from dsdoctor.paste.reader import Reader, state_gpu, state_package, state_python
from dsdoctor.paste.statements import Statements

#: Distributions that people list, by how they write them.
_PACKAGES = {
    "torch": "torch", "pytorch": "torch", "deepspeed": "deepspeed", "transformers": "transformers",
    "accelerate": "accelerate", "peft": "peft", "trl": "trl", "datasets": "datasets",
    "flash-attn": "flash-attn", "flash_attn": "flash-attn", "flash attention": "flash-attn",
    "bitsandbytes": "bitsandbytes", "triton": "triton", "vllm": "vllm", "xformers": "xformers",
    "numpy": "numpy", "torchvision": "torchvision", "lightning": "lightning",
    "pytorch-lightning": "pytorch-lightning", "pytorch lightning": "pytorch-lightning",
}  # fmt: skip
_KEY = "|".join(sorted((re.escape(name) for name in _PACKAGES), key=len, reverse=True))
_MARKS = r"[`'\"*_ ]{0,4}"
#: One item: a key, a separator, a version, and no other word.
_VERSION = re.compile(
    rf"(?i){_MARKS}(?P<key>{_KEY}|python|(?:nvidia )?driver){_MARKS}(?:version)?{_MARKS}[:=]?"
    rf"{_MARKS}v?(?P<value>\d{{1,3}}(?:\.\w{{1,12}}){{1,4}}(?:\+[\w.]{{2,12}})?)"
    rf"(?: ?\([^()]{{0,40}}\))?{_MARKS}\.?$"
)
_OS = re.compile(
    rf"(?i){_MARKS}(?:OS|operating system|system|platform){_MARKS}(?: version)?\s*[:=]{_MARKS}"
    r"(?P<name>Ubuntu|Debian|CentOS|Rocky|Windows)(?: Linux)?[ -]?(?P<value>\d{1,2}(?:\.\d{1,2})?)?"
    rf"(?:\.\d)?(?: (?:LTS|x86_64|64-bit|Server))*{_MARKS}$"
)
#: The same item, where it says that the system runs in Windows.
_IN_WSL = re.compile(
    rf"(?i){_MARKS}(?:OS|operating system|system|platform){_MARKS}(?: version)?\s*[:=]{_MARKS}"
    r"(?![^:=]{0,40}\b(?:no|not|or|without)\b)[^:=]{0,40}\bWSL ?2\b[^:=]{0,30}$"
)
_GPU_KEY = re.compile(
    rf"(?i){_MARKS}GPUs?(?: (?:count and types?|types?|models?|info|used))?\s*[:=]\s*"
)
_COUNTED = re.compile(
    r"(?:(?:(?P<before>\d{1,2}) ?[x×*]? ?|[x×*](?P<times>\d{1,2}) )(?P<one>[A-Za-z][\w /.-]{1,40}?)"
    r"|(?P<other>[A-Za-z][\w /.-]{1,40}?) ?[x×*] ?(?P<after>\d{1,2}))(?: GPUs?)?[`'\"* ]*\.?$"
)
_BULLET = re.compile(r"\s*(?:[-*•+]|\d{1,2}[.)])?\s+|^")
_SPLIT = re.compile(r"\s*(?:[,;|]|\band\b|(?<=[\w)]) (?:with|on) (?=[A-Za-z]))\s*")
#: What may stand before the versions of a row.
_ROW = re.compile(
    r"(?i)^(?:[\w /()-]{0,60}:|(?:I|we)(?:'m| am| are)? us(?:e|ed|ing)|using|with"
    r"|my \w+ (?:is|are))\s+"
)
#: Rows of a table, which may be part of anything; its own reader knows whole ones.
_COLUMNS = re.compile(r"[^:=\s]\s{2,}")
#: A longer gap between two items ends a list.
_GAP = 3
_FEWEST = 2


class _Item(NamedTuple):
    """One version.

    Attributes:
        key: what it is of.
        value: its text.
        line: its line.
    """

    key: str
    value: str
    line: Line


def _read(lines: Sequence[Line], into: Statements) -> None:
    for passage in passages(lines):
        run: list[_Item] = []
        last = 0
        for line in passage.lines:
            found = list(_items(line))
            if found and run and line.number - last > _GAP:
                _state(run, into)
                run = []
            if found:
                run += found
                last = line.number
        _state(run, into)


def _items(line: Line) -> Iterator[_Item]:
    """The items that make up a line; nothing where it has other words."""
    if len(line.text) > 300:  # noqa: PLR2004  # a paragraph
        return
    text = _BULLET.sub("", line.text, count=1).strip()
    whole = _item(text, line)
    if whole is not None:
        yield whole
        return
    rest = _ROW.sub("", text, count=1)
    parts = [part for part in _SPLIT.split(rest) if part]
    found = [item for part in parts if (item := _item(part, line)) is not None]
    if len(found) >= _FEWEST and 2 * len(found) > len(parts):
        yield from found


def _item(text: str, line: Line) -> _Item | None:
    version = _VERSION.fullmatch(text)
    if version and not _COLUMNS.search(text):
        word = version["key"].lower()
        return _Item(_PACKAGES.get(word, word.removeprefix("nvidia ")), version["value"], line)
    system = _OS.fullmatch(text)
    if system:
        return _Item("os", f"{system['name'].lower()} {system['value'] or ''}".strip(), line)
    if _IN_WSL.fullmatch(text):
        return _Item("os", "wsl", line)
    key = _GPU_KEY.match(text)
    counted = _COUNTED.fullmatch(text[key.end() :] if key else text)
    if counted is None:
        return None
    name = counted["one"] or counted["other"]
    count = counted["before"] or counted["times"] or counted["after"]
    return _Item("gpu", f"{count} {name}", line) if products_named(name) else None


def _state(run: Sequence[_Item], into: Statements) -> None:
    """States a list, unless it has two versions of one product."""
    values: dict[str, set[str]] = {}
    for item in run:
        values.setdefault(item.key, set()).add(item.value)
    if len(values) < _FEWEST:
        return
    for item in run:
        if len(values[item.key]) == 1:
            _state_item(item, into)


def _state_item(item: _Item, into: Statements) -> None:
    key, value, line = item
    if key == "python":
        if not into.states(Patient, "version"):
            state_python(value, line, into)
    elif key == "driver":
        if re.fullmatch(r"[3-9]\d\d\.\d{2,3}(?:\.\d{2})?", value) and not into.states(
            Nvml, "driver_version"
        ):
            into.state(Nvml, "driver_version", value, line)
    elif key == "os":
        _state_system(value, line, into)
    elif key == "gpu":
        _state_gpus(value, line, into)
    elif not _known(key, into):
        state_package(key, value, line, into)


def _known(key: str, into: Statements) -> bool:
    """Whether something else states the version of a package."""
    if into.states(Packages, f"packages.{key}"):
        return True
    kinds: dict[str, type[Fact]] = {"torch": TorchBuild, "deepspeed": DeepSpeedInstall}
    return key in kinds and into.states(kinds[key], "version")


def _state_system(value: str, line: Line, into: Statements) -> None:
    if value == "wsl":
        if not into.states(OsInfo, "wsl"):
            into.state(OsInfo, "wsl", True, line)
        return
    if into.states(OsInfo, "system"):
        return
    name, _, number = value.partition(" ")
    into.state(OsInfo, "system", "Windows" if name == "windows" else "Linux", line)
    if name in ("ubuntu", "debian") and number:
        into.state(OsInfo, "distribution", value, line)


def _state_gpus(value: str, line: Line, into: Statements) -> None:
    """States how many GPUs there are, and what all products that may be meant have in common."""
    if into.states(Gpus, "gpus.0.index"):
        return
    count, _, name = value.partition(" ")
    names = products_named(name)
    if len(names) == 1:
        for index in range(int(count)):
            state_gpu(index, f"NVIDIA {names[0]}", line, into)
    else:
        known = {(PRODUCTS[each].major, PRODUCTS[each].minor) for each in names}
        if len(known) != 1:
            return
        [(major, minor)] = known
        for index in range(int(count)):
            into.state(Gpus, f"gpus.{index}.index", index, line)
            into.state(Gpus, f"gpus.{index}.cc_major", major, line)
            into.state(Gpus, f"gpus.{index}.cc_minor", minor, line)
    into.state(Gpus, "count", int(count), line)
    into.state(Gpus, "stopped_at", None, line)


READER = Reader("a list of the system", _read)
