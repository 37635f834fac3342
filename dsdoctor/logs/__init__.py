"""From the log of a dead run to its cause: reader, scan, diagnose."""

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
    from dsdoctor.registry import Registry

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
    "find_sources",
    "signatures_of",
]


def signatures_of(registry: Registry) -> Knowledge:
    """Every signature of every pack, with what a diagnosis says of its condition."""
    return knowledge_of(registry)


def diagnose_paths(
    paths: Iterable[str],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
    budget: Budget | None = None,
) -> Diagnosis:
    """Reads files, folders and `-`, and names the cause; a missing file is a ReadError."""
    from dsdoctor.logs import flight_recorder  # noqa: PLC0415  # a short log has no dumps

    budget = budget or Budget()
    paths = list(paths)
    read = ((name, flight_recorder.read(name, data)) for name, data in find_dumps(paths))
    dumps = {name: dump for name, dump in read if dump is not None}
    sources = [one for one in find_sources(paths, budget) if one.name not in dumps]
    return diagnose(sources, signatures, expect=expect, dumps=tuple(dumps.values()), budget=budget)
