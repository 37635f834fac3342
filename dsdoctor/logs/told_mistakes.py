"""Mistakes of a script that a text names in a sentence, without the output of a run."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.own_fault import DATA_ASSERT, OWN_TENSORS
from dsdoctor.logs.prose import happened

#: An exception that a sentence names.
NAMED = lazy(
    r"\b[A-Z]\w{1,40}(?:Error|Exception): ?(?:(?!\b[A-Z]\w{1,40}(?:Error|Exception): ).){3,300}"
)


def mistake_told(lines: Iterable[str]) -> str:
    """The exception of the script's own that the sentences of a text name; "" if of another too.

    >>> mistake_told(["Why always RuntimeError: CUDA error: device-side assert triggered"])
    'RuntimeError: CUDA error: device-side assert triggered'
    >>> mistake_told(["Training fails with RuntimeError: something else"])
    ''
    """
    named = [found[0] for line in lines for found in NAMED.finditer(happened(line))]
    own = [text for text in named if DATA_ASSERT.search(text) or OWN_TENSORS.search(text)]
    return own[0] if own and len(own) == len(named) else ""
