"""A signal that a launcher receives while it handles another one."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.logs.echoes import signal_of
from dsdoctor.logs.errors import Error
from dsdoctor.logs.hits import Hit
from dsdoctor.logs.outlived import covers


def without_second_signals(hits: Sequence[Hit], errors: Sequence[Error]) -> list[Hit]:
    """The hits without those of a second signal: the first ended the run, it only the shutdown.

    Python prints both exceptions as one chain.
    """
    first: dict[tuple[int, int | None, int], str] = {}
    second: list[Error] = []
    for error in errors:
        name = signal_of(error)
        if name and name != first.setdefault((error.source, error.rank, error.chain), name):
            second.append(error)
    return [hit for hit in hits if not any(covers(hit, error) for error in second)]
