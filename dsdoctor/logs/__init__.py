"""From the log of a dead run to its cause: reader, scan, diagnose."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsdoctor.logs.diagnose import diagnose
from dsdoctor.logs.reader import ReadError, Source, find_sources
from dsdoctor.logs.scan import Known
from dsdoctor.model.diagnosis import Diagnosis

__all__ = ["Known", "ReadError", "Source", "diagnose", "diagnose_paths", "find_sources"]


def diagnose_paths(
    paths: Iterable[str],
    signatures: Iterable[tuple[str, str, str, Sequence[str], object]],
    *,
    expect: Sequence[str] = (),
) -> Diagnosis:
    """Reads files, folders and `-`, and names the cause; a missing file is a ReadError."""
    return diagnose(find_sources(paths), signatures, expect=expect)
