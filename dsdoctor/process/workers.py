"""Applies a function to many items, on all cores."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


def parallel(
    function: Callable[[Sequence[T]], list[R]], items: Sequence[T], *, least: int, chunk: int = 64
) -> Iterator[R]:
    """Applies a function to chunks of items, on all cores if there are many items.

    Args:
        function: a function at the top of a module; it may use globals, because workers are forks.
        items: what to work on.
        least: with fewer items, starting processes takes longer than it saves.
        chunk: items for one call.
    """
    chunks = [items[start : start + chunk] for start in range(0, len(items), chunk)]
    workers = min(os.cpu_count() or 1, 8)
    if len(items) < least or workers < 2 or not sys.platform.startswith("linux"):  # noqa: PLR2004
        for piece in chunks:
            yield from function(piece)
        return
    import multiprocessing  # noqa: PLC0415  # only large fleets need it

    with multiprocessing.get_context("fork").Pool(workers) as pool:
        for results in pool.imap(function, chunks):
            yield from results
