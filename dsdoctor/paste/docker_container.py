"""`docker run` lines and `docker inspect`: what a container was given.

Only what is written there is stated, never a default of Docker: a daemon can have another one; and
no size of a /dev/shm that is the host's. Sources: docker/cli v18 to v28
cli/command/container/opts.go; the `HostConfig` of the Engine API 1.24 to 1.48. Read 2026-11-28.
"""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Sequence

from dsdoctor.model.facts.machine import Environment, Resources
from dsdoctor.model.units import BINARY
from dsdoctor.paste.lines import Line
from dsdoctor.paste.placeholders import is_placeholder
from dsdoctor.paste.reader import Reader
from dsdoctor.paste.statements import Statements
from dsdoctor.probes.environment import allowed
from dsdoctor.probes.shell_programs import is_launch

_RUN = re.compile(
    r"(?:^|.{0,80}[$#%>❯]\s)\s*(?:sudo\s+)?(?:docker|podman|nerdctl)\s+(?:container\s+)?"
    r"(?:run|create)\s+(?P<rest>\S.*)$"
)
_SIZE = re.compile(
    r"(?P<number>\d{1,12}(?:\.\d{1,3})?)\s?(?P<unit>[bkmgt]?)(?:i?b)?$", re.IGNORECASE
)
_VARIABLE = re.compile(r"(?P<name>[A-Za-z_]\w{1,60})=(?P<value>\S{1,400})$")
_LIMITS = {"memlock": "limit_memlock", "nofile": "limit_nofile", "stack": "limit_stack"}
_ULIMIT = re.compile(r"(?P<name>memlock|nofile|stack)=(?P<soft>-?\d{1,19})(?::-?\d{1,19})?$")
#: Options of one word whose value is the next word, if it is not joined with `=`.
_VALUED = {
    "--shm-size": "shm", "-e": "env", "--env": "env", "--ulimit": "ulimit", "-m": "memory",
    "--memory": "memory", "--ipc": "ipc", "--gpus": "gpus",
    "--runtime": "runtime",
}  # fmt: skip
_GPUS = re.compile(r"['\"]?(?:(?P<count>[1-9]\d{0,3})|device=(?P<devices>[\w,.:-]{1,400}))['\"]?$")
#: Programs with the option `--gpus`.
_RUNTIMES = frozenset({"docker", "podman", "nerdctl"})
_LINES = 60
_INSPECTED = re.compile(
    r"\s*\"(?P<key>IpcMode|ShmSize|Memory)\":\s*(?P<value>\"[^\"]{0,80}\"|\d{1,18}),?\s*$"
)
_CONFIG = re.compile(r"\s*\"HostConfig\":\s*\{\s*$")
_INSPECT_LINES = 300


def _read(lines: Sequence[Line], into: Statements) -> None:
    for place, line in enumerate(lines):
        found = _RUN.match(line.text)
        if found:
            _options(_joined(lines, place, found["rest"]), line, into)
        elif _CONFIG.match(line.text):
            _inspected(lines[place + 1 : place + _INSPECT_LINES], into)


def _joined(lines: Sequence[Line], place: int, rest: str) -> str:
    """A command with the lines that a backslash joins to it."""
    parts = [rest]
    for line in lines[place + 1 : place + _LINES]:
        if not parts[-1].endswith("\\"):
            break
        parts[-1] = parts[-1][:-1]
        parts.append(line.text)
    return " ".join(parts)


def gpus_of(words: Sequence[str]) -> tuple[int, str] | None:
    """How many GPUs `docker run` passes on, and its option; None for all, or if it does not say.

    >>> gpus_of(["docker", "run", "--gpus", "2", "i"]), gpus_of(["docker", "run", "--gpus=all"])
    ((2, '--gpus 2'), None)
    >>> gpus_of(["deepspeed", "train.py", "--gpus", "2"])  # an option of the script
    """
    given = [value for kind, value in _options_of(words) if kind == "gpus"]
    found = _GPUS.match(given[0]) if len(given) == 1 else None
    if found is None:
        return None
    count = int(found["count"]) if found["count"] else len(found["devices"].split(","))
    return count, f"--gpus {given[0].strip(chr(34))}"


def runtime_of(words: Sequence[str]) -> str:
    """The runtime that `docker run` asks for; "" = none.

    >>> runtime_of(["docker", "run", "--runtime=nvidia", "image"])
    'nvidia'
    """
    given = [value for kind, value in _options_of(words) if kind == "runtime"]
    return given[0] if len(given) == 1 and re.fullmatch(r"[\w.-]{1,40}", given[0]) else ""


def command_in(words: Sequence[str]) -> tuple[str, ...]:
    """What `docker run` starts, from its launcher on; () if it starts no launcher or script.

    >>> command_in(["docker", "run", "--gpus", "2", "image", "torchrun", "a.py"])
    ('torchrun', 'a.py')
    """
    own = words[1:] if words and words[0] == "sudo" else words
    if not own or posixpath.basename(own[0]) not in _RUNTIMES or "run" not in own[1:3]:
        return ()
    return tuple(own[_end_of_options(own) :])


def _end_of_options(words: Sequence[str]) -> int:
    return next((place for place in range(2, len(words)) if _begins(words[place])), len(words))


def _options_of(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Options of `docker run`, none of another command nor of what the container starts."""
    words = words[1:] if words and words[0] == "sudo" else words
    if words and posixpath.basename(words[0]) in _RUNTIMES and "run" in words[1:3]:
        yield from _pairs_of(words[: _end_of_options(words)])


def _begins(word: str) -> bool:
    """Whether a word begins the command of the container."""
    return is_launch([word]) or re.fullmatch(r"python[\d.]*", posixpath.basename(word)) is not None


def _options(rest: str, line: Line, into: Statements) -> None:
    pairs = list(_pairs(rest))
    own = all(value in ("private", "shareable") for kind, value in pairs if kind == "ipc")
    for kind, value in pairs:
        if kind == "shm" and own:
            _state_shm(value, line, into)
        elif kind == "memory":
            size = _bytes(value)
            if size:
                into.state(Resources, "memory_limit_bytes", size, line)
        elif kind == "env":
            named = _VARIABLE.match(value)
            if named and allowed(named["name"]) and not is_placeholder(named["value"]):
                into.state(Environment, f"variables.{named['name']}", named["value"], line)
        elif kind == "runtime" and re.fullmatch(r"[\w.-]{1,40}", value):
            into.request(container_runtime=value)
        elif kind == "ulimit" and (limit := _ULIMIT.match(value)):
            soft = int(limit["soft"])
            into.state(Resources, _LIMITS[limit["name"]], None if soft < 0 else soft, line)


def _pairs(rest: str) -> Iterator[tuple[str, str]]:
    """Options before the name of the image, as far as they matter here."""
    try:
        words = shlex.split(rest)
    except ValueError:  # a quote that is not closed: the line is cut
        return
    yield from _pairs_of(words)


def _pairs_of(words: Sequence[str]) -> Iterator[tuple[str, str]]:
    for place, word in enumerate(words):
        name, joined, value = word.partition("=")
        if joined and name in _VALUED:
            yield _VALUED[name], value
        elif word in _VALUED and place + 1 < len(words):
            yield _VALUED[word], words[place + 1]


def _inspected(lines: Sequence[Line], into: Statements) -> None:
    own = True
    for line in lines:
        if line.fence or re.match(r"\s{0,8}\"(?:GraphDriver|Mounts|Config)\":", line.text):
            return
        found = _INSPECTED.match(line.text)
        if found is None:
            continue
        value = found["value"].strip('"')
        if found["key"] == "IpcMode":
            own = value in ("private", "shareable", "")  # otherwise /dev/shm is that of another
        elif found["key"] == "ShmSize" and own and value.isdecimal() and int(value):
            into.state(Resources, "shm_total_bytes", int(value), line)
        elif found["key"] == "Memory" and value.isdecimal():
            into.state(Resources, "memory_limit_bytes", int(value) or None, line)


def _bytes(text: str) -> int | None:
    found = _SIZE.match(text.strip())
    return int(float(found["number"]) * BINARY.get(found["unit"].lower(), 1)) if found else None


def _state_shm(text: str, line: Line, into: Statements) -> None:
    size = _bytes(text)
    if size:
        into.state(Resources, "shm_total_bytes", size, line)


READER = Reader("docker", _read)
