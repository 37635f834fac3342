r"""The only parser of hostfiles, with the grammar of the deepspeed launcher.

A line that DeepSpeed rejects is rejected here too: `^\S+\s+slots=\d+`, each host once, lines that
begin with `#` are skipped (`_parse_hostfile` of deepspeed/launcher/runner.py, 0.19.8).
"""

from __future__ import annotations

import re

from dsdoctor import reading
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.facts.launch import HostEntry, Hostfile, LineProblem
from dsdoctor.model.host_name import is_host_name

#: deepspeed/launcher/runner.py (0.19.8)
DEFAULT_HOSTFILE = "/job/hostfile"

_HOST_LINE = re.compile(r"^(\S+)\s+slots=([0-9]+)")
#: More than any machine has; Python does not convert numbers of unlimited length.
MOST_SLOTS = 4096


def parse_hostfile(text: str, path: str, *, asked: bool = True) -> Hostfile:
    r"""Reads a hostfile; what is wrong with it becomes its `problems`.

    >>> parse_hostfile("node-a slots=4\nnode-b 8\\n", "hosts").problems[0].reason
    'it is not of the form `HOST slots=N`'
    """
    entries: list[HostEntry] = []
    problems: list[LineProblem] = []
    seen: dict[str, int] = {}
    for number, raw in enumerate(text.splitlines(), 1):
        line = raw.strip()
        if not line or line.startswith("#"):
            continue
        match = _HOST_LINE.match(line)
        if match is None:
            reason = "it is not of the form `HOST slots=N`"
            problems.append(LineProblem(line=number, text=line, reason=reason))
            continue
        host, slots = match[1], int(match[2][:9])
        if not is_host_name(host) or slots > MOST_SLOTS:
            wrong = (
                f"`{host[:80]}` is not a host name"
                if slots <= MOST_SLOTS
                else (f"a host has at most {MOST_SLOTS} slots")
            )
            problems.append(LineProblem(line=number, text=line[:200], reason=wrong))
            continue
        if host in seen:
            reason = f"`{host}` is already on line {seen[host]}"
            problems.append(LineProblem(line=number, text=line, reason=reason))
            continue
        seen[host] = number
        entries.append(HostEntry(host=host, slots=slots, line=number))
    if not entries and not problems:
        problems.append(LineProblem(line=0, text="", reason="it lists no host"))
    return Hostfile(path=path, asked=asked, entries=tuple(entries), problems=tuple(problems))


def hosts_of(text: str, path: str) -> dict[str, int]:
    r"""The hosts in the text of a file that was passed with `--hostfile`, and their slots.

    >>> hosts_of("node-a slots=4\n", "hosts")
    {'node-a': 4}

    Raises:
        UsageError: DeepSpeed would reject the file.
    """
    found = parse_hostfile(text, path)
    for problem in found.problems:
        if not problem.line:
            break
        raise UsageError(
            f"`--hostfile {path}` line {problem.line} is `{problem.text[:80]}`: {problem.reason}; "
            "expected `HOST slots=N`, each host once"
        )
    if not found.entries:
        raise UsageError(
            f"`--hostfile {path}` lists no host; expected lines such as `gpu-1 slots=8`"
        )
    return {entry.host: entry.slots for entry in found.entries}


def read(path: str) -> dict[str, int]:
    """The hosts in a file that was passed with `--hostfile`, and their slots.

    Raises:
        UsageError: it cannot be read, or DeepSpeed would reject it.
    """
    try:
        text = reading.read_text(path)
    except (OSError, DecodeError) as error:
        raise UsageError(
            f"`--hostfile {path}` cannot be read: {reading.why(error)}; "
            "expected lines such as `gpu-1 slots=8`"
        ) from None
    return hosts_of(text, path)
