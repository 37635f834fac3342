"""Slots of the hosts that mpirun's own options list, on the command line or in a file."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping

import msgspec

from dsdoctor.host import Host, HostError, read_text
from dsdoctor.model.facts.launch import LaunchCommand

_LISTS = ("H", "host", "hosts")
_FILES = ("hostfile", "machinefile", "f")
#: A row of Open MPI's hostfile, or of a machinefile of MPICH (`HOST:N`).
_ROW = re.compile(
    r"(\S+?)(?::(\d{1,4})|[ \t]+slots[ \t]*=[ \t]*(\d{1,4}))(?:[ \t]+max[_-]slots.*)?"
)


def slots_of(text: str) -> tuple[int, ...]:
    r"""Slots of each host in rows or in a list; nothing if one of them states none.

    What a host without a number gets differs between implementations and their releases.

    >>> slots_of("a slots=8 max_slots=8\nb slots=8  # spare\n"), slots_of("a:4\na:4\nb:8")
    ((8, 8), (8, 8))
    >>> slots_of("a\nb slots=8")
    ()
    """
    found: dict[str, int] = {}
    for line in text.splitlines():
        row = line.partition("#")[0].strip()
        if not row:
            continue
        match = _ROW.fullmatch(row)
        if match is None:
            return ()
        found[match[1]] = found.get(match[1], 0) + int(match[2] or match[3])
    return tuple(found.values())


def listed_slots(outer: Mapping[str, str], host: Host, cwd: str) -> tuple[int, ...]:
    """Slots that options of mpirun state, read from its hostfile if that is readable."""
    for name in _LISTS:
        if name in outer:
            return slots_of(outer[name].replace(",", "\n"))
    for name in _FILES:
        if outer.get(name):
            try:
                return slots_of(read_text(host, posixpath.join(cwd, outer[name])))
            except HostError:
                return ()
    return ()


def with_slots(command: LaunchCommand, host: Host, cwd: str) -> LaunchCommand:
    """The command of mpirun with the slots of its hosts."""
    if command.launcher != "mpirun":
        return command
    return msgspec.structs.replace(command, mpi_slots=listed_slots(command.outer, host, cwd))
