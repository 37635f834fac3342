"""Which lines of a text were printed on a host, and which in a container of it.

A driver, the GPUs and the kernel are the host's; torch, nvcc and the rest are whatever the
container brings. A text that shows both would otherwise compare the nvcc of one with the torch of
the other. Only what a prompt, a command or a heading says places a line; all others belong to no
place.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dsdoctor.paste.lines import Line

HOST, CONTAINER, UNKNOWN = "host", "container", ""
_PROMPT = re.compile(
    r"\s{0,3}(?:\([\w.+-]{1,60}\)\s{0,3}){0,2}\[?[\w.-]{1,40}@(?P<host>[\w.-]{1,80})"
    r"(?::\s?|\s)\S{0,200}?\s{0,2}[#$%>](?:\s|$)(?P<command>.*)$"
)
#: Docker names a container's host after the first digits of its identifier, Kubernetes after the
#: pod.
_IDENTIFIER = re.compile(r"[0-9a-f]{12}|[\w-]{1,60}-[0-9a-f]{8,10}-[0-9a-z]{5}")
_BARE_PROMPT = re.compile(r"\s{0,3}[#$❯]\s(?P<command>\S.*)$")
#: Outside a block, `#` begins a heading.
_DOLLAR = re.compile(r"\s{0,3}[$❯]\s(?P<command>\S.*)$")
#: A command whose output is that of a program in a container, unless it is a shell.
_ENTERS = re.compile(
    r"(?:sudo\s+)?(?:(?:docker|podman|nerdctl)\s+(?:container\s+)?(?:run|exec)"
    r"|kubectl\s+(?:-n\s+\S+\s+)?exec|(?:singularity|apptainer)\s+(?:exec|run)"
    r"|(?:srun\s.{0,120}--container-image))\s(?P<rest>.*)$"
)
_SHELL = re.compile(r"(?:^|[\s/])(?:ba|z)?sh\s*$")
_IN_CONTAINER = re.compile(
    r"(?i)\b(?:in|inside|within|into|from)\s+(?:of\s+)?(?:(?:the|a|my|our|this|that)\s+)?"
    r"(?:[\w./:-]+\s+)?(?:container|docker|pod)\b"
    r"|^\W{0,6}(?:docker\s+|the\s+)?container(?:\s+(?:side|output|env\w*|info\w*))?\W{0,6}$|容器(?:内|里|中)"
)
_ON_HOST = re.compile(
    r"(?i)\b(?:on|from|at|of)\s+(?:(?:the|my|our|this)\s+)?(?:\w+\s+)?host\b(?!\s+name)"
    r"|^\W{0,6}(?:the\s+)?host(?:\s+(?:machine|system|side|os|node|output|env\w*|info\w*))?\W{0,6}$"
    r"|\boutside\s+(?:of\s+)?(?:the\s+|a\s+)?(?:container|docker)\b|宿主机|物理机"
)
_HEADING = re.compile(r"\s{0,3}#{1,6}\s")
#: Most words of a line that is a label and no sentence, unless a colon ends it.
_LABEL = 8


def places(lines: Sequence[Line]) -> list[str]:
    """The place of each line: `host`, `container`, or "" where nothing says it.

    >>> text = ["On the host:", "$ nvcc -V", "Inside the container:", "$ nvcc -V"]
    >>> places([Line(n, one) for n, one in enumerate(text)])
    ['host', 'host', 'container', 'container']
    """
    found: list[str] = []
    said = here = ""
    inside = False
    for line in lines:
        if line.fence:
            inside = not inside
            here = said
            if not inside:
                said = here = ""
        elif (prompt := _PROMPT.match(line.text)) is not None:
            base = _of_prompt(prompt["host"], said)
            found.append(base)
            here = _after(prompt["command"].strip(), base)
            continue
        elif (bare := (_BARE_PROMPT if inside else _DOLLAR).match(line.text)) is not None:
            found.append(said)
            here = _after(bare["command"].strip(), said)
            continue
        elif not inside:
            named = _named(line.text)
            if named is not None:
                said = here = named
            elif _HEADING.match(line.text) or len(line.text.split()) > _LABEL:
                said = here = ""
        found.append(here)
    return found


def _of_prompt(host: str, said: str) -> str:
    return CONTAINER if _IDENTIFIER.fullmatch(host) else said or HOST


def _after(command: str, base: str) -> str:
    """The place of what a command prints."""
    enters = _ENTERS.match(command)
    return CONTAINER if enters and not _SHELL.search(enters["rest"]) else base


def _named(text: str) -> str | None:
    """The place that a heading or a sentence names; None if it names none, "" if it names both."""
    inside, outside = _IN_CONTAINER.search(text), _ON_HOST.search(text)
    label = _HEADING.match(text) or text.rstrip(" *_`").endswith(":") or len(text.split()) <= _LABEL
    if not label or not (inside or outside):
        return None
    return "" if inside and outside else CONTAINER if inside else HOST


def are_mixed(found: Sequence[str]) -> bool:
    """Whether a text shows both a host and a container."""
    return HOST in found and CONTAINER in found


def only(lines: Sequence[Line], found: Sequence[str], *kept: str) -> list[Line]:
    """The lines with the text of all other places emptied, so that their numbers remain."""
    return [
        line if place in kept else line._replace(text="")
        for line, place in zip(lines, found, strict=True)
    ]
