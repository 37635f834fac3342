"""The beginnings of logs, which may contain output of environment tools."""

from __future__ import annotations

import io
import itertools
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import BinaryIO, cast

import msgspec

from dsdoctor.errors import UsageError
from dsdoctor.logs import reader
from dsdoctor.paste.words import may_state

#: Bytes of a file that are searched: an issue is far smaller, and a job prints such output first.
MOST_BYTES = 4 << 20
#: Most blocks of 1 MiB that are unpacked for them.
MOST_BLOCKS = 64


def beginning(name: str, data: bytes) -> tuple[str, bool]:
    """The first MOST_BYTES of a log in any encoding that `logs` reads, and whether that is all."""
    blocks = reader.blocks(reader.Source(name=name, data=data))
    try:
        text = _first(blocks)
        whole = len(text) < MOST_BYTES or next(iter(blocks), None) is None
    except reader.ReadError as error:
        raise UsageError(str(error)) from None
    return reader.decode(text), whole


def _first(blocks: Iterable[bytes]) -> bytes:
    """The first MOST_BYTES: what a small archive unpacks to may be gigabytes."""
    text = bytearray()
    # blocks contain no NULs, so those of an archive of zeros are empty
    for block in itertools.islice(blocks, MOST_BLOCKS):
        text += block
        if len(text) >= MOST_BYTES:
            break
    return bytes(text[:MOST_BYTES])


def heads(
    sources: Iterable[reader.Source], named: Iterable[str]
) -> tuple[list[reader.Source], list[str]]:
    """The sources of a diagnosis, and texts among their beginnings that may state an environment.

    Args:
        sources: the logs. What was read of standard input is put back before the rest.
        named: paths on the command line; files of a folder are logs of ranks, and are left out.
    """
    kept, texts = [], []
    wanted = set(named)
    for source in sources:
        head = b""
        if source.path is None:
            head = sys.stdin.buffer.read(MOST_BYTES)
            joined = cast("BinaryIO", io.BufferedReader(reader.Joined(head, sys.stdin.buffer)))
            kept.append(msgspec.structs.replace(source, stream=joined))
        else:
            kept.append(source)
            if source.name in wanted:
                head = _head(source.path)
        text = beginning(source.name, head)[0] if head else ""
        if may_state(text):
            texts.append(text)
    return kept, texts


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MOST_BYTES)
    except OSError:
        return b""  # reading it as a log reports why
