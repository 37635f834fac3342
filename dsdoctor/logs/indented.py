"""Logs of which each line is indented, as in a list of a document or a block of YAML."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

#: Lines at the beginning of a log that show it, and how few do not.
_SAMPLE, _FEWEST = 2000, 5
_PAD = re.compile(rb" *")
#: How Python indents a frame, by which it is recognized.
_FRAME = b'  File "'


def unindented(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """The blocks of a log without the spaces with which all of its lines begin.

    Args:
        blocks: whole lines, as `reader.blocks` yields them.
    """
    first = next(blocks, b"")
    if not first.startswith((b" ", b"\n", b"\r")):  # most logs
        return itertools.chain((first,), blocks) if first else blocks
    pad = _common(first)
    if not pad:
        return itertools.chain((first,), blocks)
    return (_cut(block, pad) for block in itertools.chain((first,), blocks))


def _common(block: bytes) -> bytes:
    lines = [line for line in block.split(b"\n", _SAMPLE)[:_SAMPLE] if line.strip()]
    if len(lines) < _FEWEST:
        return b""
    pad = min((_PAD.match(line).group() for line in lines), key=len)  # type: ignore[union-attr]  # always matches
    # the frames of a traceback without its head and its exception
    bare = any(line.startswith(pad + _FRAME.lstrip()) for line in lines)
    return pad[: len(pad) - len(_FRAME) + len(_FRAME.lstrip())] if bare else pad


def _cut(block: bytes, pad: bytes) -> bytes:
    return block.removeprefix(pad).replace(b"\n" + pad, b"\n")
