"""From the log of a dead run to its cause: reader, scan, diagnose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsdoctor.logs.diagnose import diagnose
from dsdoctor.logs.reader import ReadError, Source, find_sources
from dsdoctor.logs.scan import Known
from dsdoctor.model.condition import Signature
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.registry import Registry

__all__ = [
    "Known",
    "ReadError",
    "Row",
    "Source",
    "diagnose",
    "diagnose_paths",
    "find_sources",
    "signatures_of",
]

#: Condition, title, hint, fixes, and one of its signatures.
Row = tuple[str, str, str, tuple[str, ...], Signature]


def signatures_of(registry: Registry) -> list[Row]:
    """Every signature of every pack, with what a diagnosis says of its condition."""
    return [
        (unit.condition.name, unit.title, unit.hint, unit.condition.fixes, signature)
        for unit in sorted(registry, key=lambda unit: unit.condition.name)
        for signature in unit.signatures
    ]


def diagnose_paths(
    paths: Iterable[str],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
) -> Diagnosis:
    """Reads files, folders and `-`, and names the cause; a missing file is a ReadError."""
    return diagnose(find_sources(paths), signatures, expect=expect)
