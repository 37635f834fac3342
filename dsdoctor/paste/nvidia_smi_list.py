"""`nvidia-smi -L` and `nvidia-smi nvlink -s`: the GPUs by name, and their NVLinks."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.paste.lines import Line
from dsdoctor.paste.reader import Reader, state_gpu
from dsdoctor.paste.statements import Statements

_GPU = re.compile(
    r"\s*GPU (?P<index>\d{1,3}): (?P<name>[^(]{2,80}?) "
    r"\(UUID: (?:(?P<uuid>GPU-[0-9a-fA-F-]{8,40})|[^()]{1,50})\)\s*$"  # people shorten it
)
_LINK = re.compile(
    r"\s+Link (?P<link>\d{1,2}): (?:(?P<speed>\d{1,4}(?:\.\d{1,3})?) GB/s|<inactive>|inactive)"
)
#: A slice of the GPU above it.
_MIG = re.compile(
    r"\s+MIG (?P<profile>\d\w?\.\d{1,3}gb\S{0,12})\s+Device\s+(?P<device>\d{1,2}): "
    r"\(UUID: (?P<uuid>MIG-[^()\s]{1,90})\)\s*$"
)


def _read(lines: Sequence[Line], into: Statements) -> None:
    index, links = -1, {}
    first: Line | None = None
    _read_slices(lines, into)
    for line in lines:
        gpu = _GPU.match(line.text)
        link = _LINK.match(line.text) if index >= 0 else None
        if link and int(link["link"]) not in links:
            links[int(link["link"])] = _link(link)
            first = first or line
            continue
        if link is None:
            _say(index, links, first, into)
            index, links, first = -1, {}, None
        if gpu:
            index = int(gpu["index"])
            state_gpu(index, gpu["name"], line, into)
            if gpu["uuid"]:
                into.state(Gpus, f"gpus.{index}.uuid", gpu["uuid"], line)
    _say(index, links, first, into)


def _read_slices(lines: Sequence[Line], into: Statements) -> None:
    """States that a GPU is divided, and its slices up to the next GPU."""
    index = -1
    slices: dict[int, list[dict[str, Any]]] = {}
    places: dict[int, Line] = {}
    for line in lines:
        gpu, part = _GPU.match(line.text), _MIG.match(line.text)
        if gpu:
            index = int(gpu["index"])
        elif part and index >= 0:
            own = slices.setdefault(index, [])
            own.append(
                {"index": int(part["device"]), "profile": part["profile"], "uuid": part["uuid"]}
            )
            places.setdefault(index, line)
        elif line.text.strip():
            index = -1
    for number, found in slices.items():
        into.state(Gpus, f"gpus.{number}.mig_mode", value=True, line=places[number])
        into.state(Gpus, f"gpus.{number}.mig_devices", found, places[number])


def _link(found: re.Match[str]) -> dict[str, Any]:
    link: dict[str, Any] = {"link": int(found["link"]), "state": 1 if found["speed"] else 0}
    if found["speed"]:
        link["speed_mbps"] = round(float(found["speed"]) * 1000)
    return link


def _say(index: int, links: dict[int, Any], line: Line | None, into: Statements) -> None:
    """States the links of a GPU if their numbers start at 0 and have no gap."""
    if line is not None and sorted(links) == list(range(len(links))):
        into.state(Gpus, f"gpus.{index}.links", [links[n] for n in sorted(links)], line)


READER = Reader("nvidia-smi -L", _read)
