"""Output of environment tools in text that people paste: read, judged, added to a diagnosis."""

from __future__ import annotations

import dataclasses
import io
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from dsdoctor import reading
from dsdoctor.cli import common
from dsdoctor.errors import UsageError
from dsdoctor.judge import judge
from dsdoctor.logs import reader
from dsdoctor.model.decode import DecodeError
from dsdoctor.model.diagnosis import Diagnosis
from dsdoctor.model.finding import Status
from dsdoctor.model.report import Report
from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste import READERS, environment_of, may_state
from dsdoctor.registry import Registry

#: Bytes of a file that are searched: an issue is far smaller, and a job prints such output first.
MOST_BYTES = 4 << 20


def load_paste(path: str) -> Snapshot:
    """The partial snapshot of a file, or of standard input for `-`.

    Raises:
        UsageError: it cannot be read, or no reader recognizes anything in it.
    """
    expected = f"expected output of {', '.join(f'`{one.name}`' for one in READERS)}"
    try:
        data = reading.read(path)
    except OSError as error:
        raise UsageError(f"`{path}` cannot be read: {error.strerror}; {expected}") from None
    except DecodeError as error:
        raise UsageError(f"`{path}` cannot be read: {error}; {expected}") from None
    found = environment_of(decoded(path, data))
    if found is None:
        raise UsageError(f"`{path}` states nothing about a machine; {expected}")
    return found


def decoded(name: str, data: bytes) -> str:
    """Text of any encoding and packing that logs come in."""
    blocks = reader.blocks(reader.Source(name=name, data=data))
    try:
        text = b"".join(blocks)[:MOST_BYTES]
    except reader.ReadError as error:
        raise UsageError(str(error)) from None
    return reader.decode(text)


def heads(
    sources: Iterable[reader.Source], named: Iterable[str]
) -> tuple[list[reader.Source], list[str]]:
    """The sources of a diagnosis, and texts among their beginnings that may state an environment.

    Args:
        sources: the logs. What was read of standard input is put before the rest.
        named: paths of the command line; the files of a folder are logs of ranks, and are left out.
    """
    kept, texts = [], []
    wanted = set(named)
    for source in sources:
        head = b""
        if source.path is None:
            head = sys.stdin.buffer.read(MOST_BYTES)
            joined = cast("BinaryIO", io.BufferedReader(reader.Joined(head, sys.stdin.buffer)))
            kept.append(dataclasses.replace(source, stream=joined))
        else:
            kept.append(source)
            if source.name in wanted:
                head = _head(source.path)
        text = decoded(source.name, head) if head else ""
        if may_state(text):
            texts.append(text)
    return kept, texts


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""  # whoever reads it as a log says why


def judged(text: str, registry: Registry) -> Report | None:
    """What is found in the environment that a text states; None where it states none."""
    snapshot = environment_of(text)
    if snapshot is None:
        return None
    settings = common.load_settings(registry)
    units = registry.select((), list(settings.ignore))
    report = judge(snapshot, units, registry, common.policy(settings, ()))
    report.findings = [one for one in report.findings if one.status is not Status.SKIP]
    return report


def with_environment(diagnosis: Diagnosis, texts: Iterable[str], registry: Registry) -> Diagnosis:
    """The diagnosis, with what is found in the environment that one of its texts states."""
    for text in texts:
        report = judged(text, registry)
        if report is not None:
            return msgspec.structs.replace(diagnosis, environment=report)
    return diagnosis
