"""Which products of an error index a text may quote: read from one file instead of all indexes.

`python docs/generate.py` writes the file: a row for each product, with the marks of its messages
(`error_index.Entry.mark`). Reading all indexes takes 30 ms, a fifth of the time for a short log.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

FILE = "marks"


def render(marks: Mapping[str, Iterable[str]]) -> str:
    """The content of the file."""
    rows = [" ".join([product, *sorted({*found})]) for product, found in sorted(marks.items())]
    return "\n".join(rows) + "\n"


@functools.lru_cache(maxsize=4)
def _stored(folder: Path) -> tuple[tuple[str, frozenset[str]], ...]:
    path = folder / FILE
    rows = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    return tuple((row.partition(" ")[0], frozenset(row.split(" "))) for row in rows)


def quoted(folder: Path, names: Iterable[str], there: Collection[str]) -> list[str]:
    """Those of some products of which a text may contain a whole message, without a place.

    Args:
        folder: folder of the index; without such a file in it, any product may be quoted.
        names: the products.
        there: the chunks of the text, as an index stores them.
    """
    stored = dict(_stored(folder))
    return [name for name in names if not stored or not stored[name].isdisjoint(there)]
