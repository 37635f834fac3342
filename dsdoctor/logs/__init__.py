"""From the log of a dead run to its cause: `reader`, `scan`, `diagnose`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from dsdoctor.logs.bounds import Budget
from dsdoctor.logs.diagnose import diagnose
from dsdoctor.logs.knowledge import Answered, Knowledge, Known, Row, Rule, knowledge_of
from dsdoctor.logs.raised import explained
from dsdoctor.logs.reader import ReadError, Source, find_dumps, find_sources
from dsdoctor.model.diagnosis import Diagnosis

if TYPE_CHECKING:  # short logs are read without the packs
    from dsdoctor.logs.flight_recorder import Dump
    from dsdoctor.packs.registry import Registry

__all__ = [
    "Answered",
    "Budget",
    "Knowledge",
    "Known",
    "ReadError",
    "Row",
    "Rule",
    "Source",
    "diagnose",
    "diagnose_paths",
    "explained",
    "find",
    "find_sources",
    "signatures_of",
]


def signatures_of(registry: Registry) -> Knowledge:
    """Every signature of every pack, with the title, hint and fixes of its condition."""
    return knowledge_of(registry)


def diagnose_paths(
    paths: Iterable[str],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
    dumps: Sequence[str] = (),
    budget: Budget | None = None,
) -> Diagnosis:
    """Reads files, folders and `-`, and names the cause.

    Args:
        paths: logs, and dumps of torch's flight recorder next to them.
        signatures: as `signatures_of` returns them.
        expect: what must have been active, as for `--expect`.
        dumps: further files to read as dumps; those that are not dumps are ignored.
        budget: limits on what is read.

    Raises:
        ReadError: a file is missing.
    """
    budget = budget or Budget()
    sources, found = find(list(paths), budget)
    found += tuple(read_dumps(dumps, budget).values())
    return diagnose(sources, signatures, expect=expect, dumps=found, budget=budget)


def read_dumps(paths: Iterable[str], budget: Budget) -> dict[str, Dump]:
    """The dumps of torch's flight recorder among these files, by file name."""
    dumps: dict[str, Dump] = {}
    for name, data in find_dumps(paths, budget):
        from dsdoctor.logs import flight_recorder  # noqa: PLC0415  # most logs have no dumps

        if (dump := flight_recorder.read(name, data)) is not None:
            dumps[name] = dump
    return dumps


def find(paths: Sequence[str], budget: Budget) -> tuple[list[Source], tuple[Dump, ...]]:
    """Logs in files, folders and `-`, and dumps of torch's flight recorder next to them.

    Raises:
        ReadError: a file is missing.
    """
    dumps = read_dumps(paths, budget)
    sources = [one for one in find_sources(paths, budget) if one.name not in dumps]
    return sources, tuple(dumps.values())
