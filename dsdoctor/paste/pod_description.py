"""`kubectl describe pod`: what the containers of a pod are given, and their commands.

A pod counts if the section after its containers has begun: otherwise the text is cut. Source:
Kubernetes 1.20 to 1.34, staging/src/k8s.io/kubectl/pkg/describe/describe.go (`describePod`,
`describeContainers`, `describeVolumes`), read 2026-11-28.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from dsdoctor.paste.container_files import (
    Container,
    chosen,
    containers_of,
    of_pod,
    state_container,
)
from dsdoctor.paste.lines import Line
from dsdoctor.paste.passages import Passage, passages
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements

_CONTAINERS = re.compile(r"(?P<indent>\s*)Containers:\s*$")
_SECTION = re.compile(r"(?P<name>[A-Z][A-Za-z ]{2,30}):(?:\s|$)")
_KEY = re.compile(r"(?P<key>[\w./ -]{1,80}):(?:\s+(?P<value>\S.*?))?\s*$")
_MOUNT = re.compile(r"(?P<path>/\S{0,200}) from (?P<name>\S{1,80}) \(")
_SHELL = re.compile(r"(?:/\S*/)?(?:ba|da|z)?sh$")
_LISTS = ("Command", "Args", "Mounts")
_MAPPINGS = ("Limits", "Environment")
_LEVEL = 2
_LINES = 400


def described_pods(passage: Passage) -> Iterator[tuple[tuple[Line, ...], list[Container]]]:
    """The lines of each description in a passage, from its containers on, with these.

    One that is cut has lines, which are no shell's, and no containers.
    """
    lines = passage.lines
    for place, line in enumerate(lines):
        head = _CONTAINERS.match(line.text)
        if head:
            sections = _sections(lines[place : place + _LINES], len(head["indent"]))
            rows = tuple(one for section in sections.values() for one in section)
            own = tuple(sections["Containers"])
            volumes = _volumes(sections.get("Volumes", []))
            whole = len(sections) > 1
            found = [of_pod(one, {"volumes": volumes}, own) for one in _containers(own[1:])]
            yield rows, found if whole else []


def _sections(lines: Sequence[Line], indent: int) -> dict[str, list[Line]]:
    """The sections from the containers on, up to the last whose end the text contains."""
    found: dict[str, list[Line]] = {}
    current: list[Line] = []
    for line in lines:
        text = line.text[indent:]
        heading = _SECTION.match(text)
        if line.fence or (text.strip() and not heading and not text.startswith(" ")):
            break
        if heading:
            if heading["name"] in found:
                break
            current = found[heading["name"]] = []
        current.append(line._replace(text=text))
    return found


def _depth(line: Line) -> int:
    return (len(line.text) - len(line.text.lstrip())) // _LEVEL


def _containers(lines: Sequence[Line]) -> Iterator[dict[str, Any]]:
    """Each container, as a manifest would have it."""
    values: dict[str, Any] | None = None
    within = ""
    for line in lines:
        depth, text = _depth(line), line.text.strip()
        item = _KEY.match(text)
        if depth == 1 and item and not item["value"]:
            if values is not None:
                yield _as_in_manifest(values)
            values, within = {}, ""
        elif values is None:
            continue
        elif depth == 2 and item:  # noqa: PLR2004
            within = "" if item["value"] else item["key"]
        elif depth > 2 and within in _LISTS:  # noqa: PLR2004
            values.setdefault(within, []).append(text)
        elif depth > 2 and within in _MAPPINGS and item and item["value"]:  # noqa: PLR2004
            values.setdefault(within, {})[item["key"].strip()] = item["value"]
    if values is not None:
        yield _as_in_manifest(values)


def _as_in_manifest(values: dict[str, Any]) -> dict[str, Any]:
    words = [*values.get("Command", []), *values.get("Args", [])]
    if len(words) > 2 and _SHELL.match(words[0]):  # noqa: PLR2004  # the lines of a script are rows
        words = [*words[:2], "\n".join(words[2:])]
    mounts = [found for row in values.get("Mounts", []) if (found := _MOUNT.match(row))]
    return {
        "command": words,
        "env": [
            # `<set to the key …>` is not the value
            {"name": name, "value": value}
            for name, value in values.get("Environment", {}).items()
            if not value.startswith("<")
        ],
        "resources": {"limits": values.get("Limits", {})},
        "volumeMounts": [{"mountPath": one["path"], "name": one["name"]} for one in mounts],
    }


def _volumes(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The volumes in memory, with their sizes."""
    found: list[dict[str, Any]] = []
    for line in lines:
        item = _KEY.match(line.text.strip())
        if _depth(line) == 1 and item and not item["value"]:
            found.append({"name": item["key"], "emptyDir": {}})
        elif found and item and item["key"] == "Medium":
            found[-1]["emptyDir"]["medium"] = item["value"]
        elif found and item and item["key"] == "SizeLimit":
            found[-1]["emptyDir"]["sizeLimit"] = item["value"]
    return found


def all_containers(passage: Passage) -> list[Container]:
    """The containers of descriptions, manifests and compose files in a passage."""
    described = [one for _, found in described_pods(passage) for one in found]
    return [*described, *containers_of(passage)]


def _read(lines: Sequence[Line], into: Statements) -> None:
    found = chosen([one for passage in passages(lines) for one in all_containers(passage)])
    if found:
        state_container(found, into)


READER = Reader("a manifest, a pod or a compose file", _read)
