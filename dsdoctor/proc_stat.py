"""What the kernel reports about a process in `/proc/PID/stat` (proc(5)).

Standard library only: hooks read it before they load anything else.
"""

from __future__ import annotations

from typing import NamedTuple

#: Position of `starttime` after the name, which may contain blanks and parentheses itself.
_STARTED = 19


class ProcStat(NamedTuple):
    """The fields that dsdoctor uses.

    Attributes:
        name: of the program, at most 15 characters.
        state: one letter; `Z` and `X` = it has ended.
        started: clock ticks from boot to its start; with the pid it identifies the process.
    """

    name: str
    state: str
    started: int


def parse(data: bytes) -> ProcStat:
    """Parses the content of the file.

    >>> parse(b"7 (python 3) S 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 4711 0 0")
    ProcStat(name='python 3', state='S', started=4711)

    Raises:
        ValueError: it has too few fields.
    """
    head, _, rest = data.rpartition(b")")
    fields = rest.split()
    if len(fields) <= _STARTED:
        raise ValueError(f"{len(fields)} fields after the name")
    name = head.partition(b"(")[2].decode("utf-8", "replace")
    return ProcStat(name, fields[0].decode("ascii", "replace"), int(fields[_STARTED]))
