"""Whether the words of a text identify a message of the error index."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dsdoctor.logs.error_lookup import CHUNK, words_of
from dsdoctor.logs.errors import PYTHONS_WORDS

if TYPE_CHECKING:
    from dsdoctor.logs.error_index import Entry

#: Fewest literal words that identify a message without the place that raised it.
ENOUGH_WORDS = 4
#: Exceptions that Python raises with the same words, so only the place distinguishes them.
PYTHONS_OWN = frozenset({"AttributeError", "IndexError", "KeyError", "NameError", "StopIteration"})


def is_identified(entry: Entry, place: tuple[str, str], placed: bool, message: str) -> bool:
    """Whether the words identify an entry, or else the place that raised the exception does."""
    own = entry.exception in PYTHONS_OWN or PYTHONS_WORDS.search(message)
    if entry.words >= ENOUGH_WORDS and not own:
        return placed or says_most(entry, message)
    if entry.is_native:  # no traceback shows where
        return placed and entry.words == len(words_of(message))
    return placed and (entry.file, entry.function) == place


def is_native_message(entry: Entry, message: str) -> bool:
    """Whether the words of an entry of native code are a message, or most of it."""
    is_whole = entry.words == len(words_of(message))
    return is_whole or (
        entry.words >= ENOUGH_WORDS
        and entry.exception not in PYTHONS_OWN
        and not PYTHONS_WORDS.search(message)
        and says_most(entry, message)
    )


def says_most(entry: Entry, message: str) -> bool:
    """Whether the words of an entry identify a message whose place is not known.

    `{} is not divisible by {}` occurs in sentences of many programs. Fields contain numbers and
    names, so a message consists mostly of the entry's own words, or has a long run of them.
    """
    longest = max((count for count, _ in entry.chunks), default=0)
    return longest >= CHUNK or 2 * entry.words >= len(words_of(message))


def in_order(entry: Entry, there: Mapping[tuple[int, str], Sequence[int]]) -> bool:
    """Whether a text contains all chunks of an entry, one after the other."""
    at = 0
    for place, chunk in enumerate(entry.chunks):
        starts = there.get(chunk, ())
        if place == 0 and entry.anchored:
            starts = starts[:1] if starts and starts[0] == 0 else ()
        start = next((one for one in starts if one >= at), None)
        if start is None:
            return False
        at = start + chunk[0]
    return True
