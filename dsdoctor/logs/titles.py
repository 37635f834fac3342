"""The title of an issue or a forum's thread, which often is the error itself."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator

#: A heading in Markdown as the first line, with an empty line below it: a comment of a shell or of
#: Python has its code or another comment there. A document's subject has no form of a message.
_HEADING = re.compile(
    rb"(?:\xef\xbb\xbf)?#[ \t]+(?=[^\s#][^\n]{0,400}\r?\n[ \t]*\r?\n)"
    rb"(?=[^\n]{0,400}(?:: |Error|Exception))"
)


def without_mark(blocks: Iterator[bytes]) -> Iterator[bytes]:
    r"""The blocks of a log; the heading at its beginning is a line like the others.

    >>> list(without_mark(iter([b"# RuntimeError: CUDA error\n\nI ran it\n"])))
    [b'RuntimeError: CUDA error\n\nI ran it\n']
    >>> list(without_mark(iter([b"# start\ntorchrun t.py\n"])))
    [b'# start\ntorchrun t.py\n']
    """
    first = next(blocks, b"")
    found = _HEADING.match(first)
    rest = first[found.end() :] if found else first
    return itertools.chain((rest,), blocks) if rest else blocks
