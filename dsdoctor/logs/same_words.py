"""Whether the words of a text identify a message of the error index."""

from __future__ import annotations

import builtins
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dsdoctor.logs.common_words import COMMON
from dsdoctor.logs.error_lookup import CHUNK, INTERNAL, REFUSAL, chunks_of, digest, words_of
from dsdoctor.logs.errors import PYTHONS_WORDS, Error
from dsdoctor.logs.products import package_of

if TYPE_CHECKING:
    from dsdoctor.logs.error_index import Entry, Match

#: Fewest literal words that identify a message without the place that raised it.
ENOUGH_WORDS = 4
#: Exceptions that Python raises with the same words, so only the place distinguishes them.
PYTHONS_OWN = frozenset({"AttributeError", "IndexError", "KeyError", "NameError", "StopIteration"})
#: Exceptions of libraries for commands, which programs of all kinds raise (click 8.3 exceptions.py;
#: 2026-11-29).
COMMANDS_OWN = frozenset({"BadParameter", "ClickException", "UsageError"})
#: Names that only a product's messages contain, as they are spelled.
NAMES = {"deepspeed": ("ZeRO",)}
#: Words for what the names of conditions call a path.
PATHS = frozenset({"directory", "file", "files", "folder"})
#: Words in the names of conditions that say what a condition is about.
TOPICS = frozenset(
    {
        "batch", "bf", "checkpoint", "cuda", "disk", "fp", "gpu", "hub", "memory", "nccl", "oom",
        "path", "port", "torch", "triton", "weights",
    }
)  # fmt: skip
#: From so many literal words on, the words of a message tell whose it is, however common each is.
MANY_WORDS = 9
#: Otherwise so many of its words must be uncommon; the name of a variable counts twice.
UNCOMMON_WORDS = 2


def is_identified(entry: Entry, place: tuple[str, str], placed: bool, message: str) -> bool:
    """Whether the words identify an entry, or else the place that raised the exception does."""
    own = entry.exception in PYTHONS_OWN or PYTHONS_WORDS.search(message)
    if entry.words >= ENOUGH_WORDS and not own:
        return placed or says_most(entry, message)
    if entry.is_native:  # no traceback shows where
        return placed and entry.words == len(words_of(message))
    # a message that is put together has parts such as `Url: …`, a word that others contain too
    is_part = entry.words == 1 and not entry.anchored and not says_most(entry, message)
    return placed and (entry.file, entry.function) == place and not is_part


def may_speak(match: Match, error: Error, message: str) -> bool:
    """Whether an entry may answer for its product, though the place that raised is not known.

    Every script calls torch's native code.
    """
    entry, label = match.entry, match.label
    if label is not None and _is_named(label.kind, message):
        return True
    is_torch = entry.is_native and entry.product == "torch"
    return is_torch or is_telling(entry, message) or _shows(error, entry)


def _is_named(kind: str, message: str) -> bool:
    """Whether a message mentions what a condition's name does: it is true whoever says so.

    That a value must be an integer says nothing about DeepSpeed's config; that a GPU is not
    available is about GPUs.
    """
    if kind in {REFUSAL, INTERNAL}:
        return False
    said = {"path" if word in PATHS else word for word in words_of(message)}
    return not TOPICS.isdisjoint(said & {*words_of(kind)})


def _shows(error: Error, entry: Entry) -> bool:
    """Whether an exception shows whose it is: by a frame, by a name in its line, or by its class.

    The line names the module of an exception, and the logger that wrote it.
    """
    return (
        entry.product in {package_of(frame.file) for frame in error.frames}
        or entry.product in error.text.lower().replace("-", "_")
        or any(name in error.text for name in NAMES.get(entry.product, ()))
        or is_a_products(entry.exception)
    )


def is_a_products(exception: str) -> bool:
    """Whether an exception is a class of a product's own."""
    is_pythons = hasattr(builtins, exception)
    return not (is_pythons or exception.startswith("log.") or exception in COMMANDS_OWN)


def is_telling(entry: Entry, text: str) -> bool:
    """Whether the words of an entry in a text tell whose message it is.

    Programs of all kinds say that something must be a positive integer.
    """
    if entry.words >= MANY_WORDS:
        return True
    words, there = words_of(text), chunks_of(text)
    said = {
        word
        for chunk in entry.chunks
        for start in there.get(chunk, ())[:1]
        for word in words[start : start + chunk[0]]
    }
    return entry.product in words or weight(said) >= UNCOMMON_WORDS


def weight(words: Iterable[str], names: Collection[str] = ()) -> int:
    """How many of a message's words are uncommon; the name of a variable or class counts twice."""
    uncommon = {*words} - COMMON
    return sum(2 if "_" in word.strip("_") or word in names else 1 for word in uncommon)


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


def begins_with(entry: Entry, line: str) -> bool:
    """Whether a message begins with a line: with its chunks, as far as they are full ones."""
    words = words_of(line)
    starts = range(0, max(CHUNK, len(words) // CHUNK * CHUNK), CHUNK)
    parts = [words[start : start + CHUNK] for start in starts]
    return entry.chunks[: len(parts)] == tuple((len(part), digest(part)) for part in parts)


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
