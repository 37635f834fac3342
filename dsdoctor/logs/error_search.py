"""Finds the message of the error index that a text quotes, for `explain`.

People quote the first sentence of a message, the part that a narrow terminal shows, or a line from
its middle. The index has hashes of up to six words in a row, so such a part contains some of them
whole, one after the other, and at its ends words of hashes that it does not contain whole.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from dsdoctor.lazy_regex import lazy
from dsdoctor.logs.error_index import Entry, Match, load_rows
from dsdoctor.logs.error_lookup import (
    CHUNK,
    WORD,
    canonical,
    chunks_of,
    products,
    stored_text,
    stored_words,
    words_of,
)
from dsdoctor.logs.errors import PYTHONS_WORDS
from dsdoctor.logs.same_words import (
    ENOUGH_WORDS,
    MANY_WORDS,
    PYTHONS_OWN,
    UNCOMMON_WORDS,
    is_a_products,
    weight,
)

#: The type in front of a message, and whatever a log prints before that.
TYPE = lazy(r"^(?:\[[^\]]{1,40}\]:? ?)?(?:\w+\.){0,9}(?P<kind>\w*(?:Error|Exception)): ")
#: What a logger prints in front of a message, with the place that logs it: DeepSpeed
#: (utils/logging.py, 0.3-0.19) and transformers (utils/logging.py, 4.0-5.24).
LOGGED = lazy(
    r"^(?:\S{1,60}: )?(?:\[[\d :,.-]{10,40}\] \[[A-Z]+\] "
    r"\[(?P<file>\w+\.py):\d+:(?P<function>[\w<>]+)\]"
    r"|\[[A-Z]+\|(?P<other>\w+\.py):\d+\] [\d :,.-]{10,40}>>) ?(?:\[Rank \d+\] )?"
)
#: What is in front of a message: names up to a colon.
HEAD = lazy(r"[^\s:]{1,80}(?:\s[^\s:]{1,80}){0,3}\s?:")
#: A capital within a word.
CLASS = lazy(r"[a-z][A-Z]|[A-Z]{2}[a-z]")
#: Share of a message's words, or of a text's, that the other must contain.
ALMOST = 0.6
HALF = 0.5
#: Fewest words of a part that is not the whole text.
ENOUGH_OF_A_PART = 6
#: Fewest words in a row by which a row of the index is looked up.
IN_A_ROW = 2

#: Number of words and hash of a chunk.
Chunk = tuple[int, str]


class Text(NamedTuple):
    """A text that may quote a message.

    Attributes:
        whole: the text.
        kind: the type in front of the message, "" without one.
        words: the words of the message.
        names: those that are spelled as names of classes are.
        there: where each chunk of the message begins.
        file: the file that logs it, as the logger prints it; "" without one.
        function: the function that logs it; "" if the logger prints none.
    """

    whole: str
    kind: str
    words: list[str]
    names: frozenset[str]
    there: Mapping[Chunk, Sequence[int]]
    file: str
    function: str

    @classmethod
    def read(cls, text: str, *, is_typed: bool = True) -> Text:
        """Separates a message from its type and from what a logger prints in front of it."""
        text = text.strip()
        logged = LOGGED.match(text)
        text = text[logged.end() :] if logged else text
        found = TYPE.match(text) if is_typed else None
        message = text[found.end() :] if found else text
        words = words_of(message)
        return cls(
            text,
            canonical(found["kind"]) if found else "",
            words,
            frozenset(name.lower() for name in WORD.findall(message) if CLASS.search(name)),
            chunks_of(" ".join(words)),
            (logged["file"] or logged["other"]) if logged else "",
            (logged["function"] or "") if logged else "",
        )

    def is_logged_by(self, entry: Entry) -> bool:
        """Whether the logger's prefix names the place of an entry."""
        is_there = entry.file.rpartition("/")[2] == self.file
        return is_there and self.function in {"", entry.function}


class Quoted(NamedTuple):
    """The chunks of an entry that a text contains one after the other.

    Attributes:
        entry: the message.
        said: the words of these chunks.
        held: their numbers.
        begins: the message and the text begin with them.
    """

    entry: Entry
    said: list[str]
    held: list[int]
    begins: bool

    def rate(self, text: Text) -> tuple[int, bool, bool, bool]:
        """How well a text fits: how many words, whether they are all, its type and its place."""
        count = len(self.said)
        is_all = count == self.entry.words == len(text.words)
        is_there = text.is_logged_by(self.entry)
        return count, is_all, text.kind == self.entry.exception, is_there


def search(folder: Path, text: str) -> Match | None:
    """The message that a text contains or quotes a part of; None if it is not in the index.

    Without a place, words that Python itself raises identify no message, unless they are the
    whole of one that native code says. If several messages fit equally well and have different
    answers, none is chosen.
    """
    read = Text.read(text)
    found = _search(folder, read)
    # native code prints `Error: …` as words of its own
    if found is None and read.kind == "Error":
        found = _search(folder, Text.read(text, is_typed=False))
    return found


def _search(folder: Path, read: Text) -> Match | None:
    """The message that a text contains or quotes a part of."""
    found: list[tuple[tuple[int, bool, bool, bool], Match]] = []
    for product in sorted(products(folder)):
        rows = _rows_that_share(folder, product, read.there)
        index = load_rows(folder, product, rows) if rows else None
        for entry in index.entries if index is not None else ():
            quoted = _quoted(entry, read)
            if quoted is not None and index is not None and _identifies(quoted, read):
                found.append((quoted.rate(read), index.answer(entry)))
    top = max((rate for rate, _ in found), default=None)
    best = [match for rate, match in found if rate == top and match.label is not None]
    return best[0] if len({match.label for match in best}) == 1 else None


def _rows_that_share(
    folder: Path, product: str, there: Mapping[Chunk, Sequence[int]]
) -> tuple[int, ...]:
    """Where the rows begin in a stored index that share several words in a row with a text."""
    names = {f"{count}:{name}" for count, name in there if count >= IN_A_ROW}
    stored = stored_text(folder, product)
    found: set[int] = set()
    for chunk in stored_words(folder, product) & {*names, *(f"^{name}" for name in names)}:
        at = stored.find(chunk)
        while at >= 0:
            found.add(stored.rindex("\n", 0, at) + 1)
            at = stored.find(chunk, at + 1)
    return tuple(sorted(found))


def _quoted(entry: Entry, text: Text) -> Quoted | None:
    """The chunks of an entry that a text contains in order, from the one with which most follow."""
    best = Quoted(entry, [], [], begins=False)
    for first in range(len(entry.chunks)):
        at = 0
        said: list[str] = []
        held: list[int] = []
        begins = False
        for number, chunk in enumerate(entry.chunks[first:], first):
            start = next((one for one in text.there.get(chunk, ()) if one >= at), None)
            if start is not None:
                begins = begins or start == number == 0
                at = start + chunk[0]
                said += text.words[start:at]
                held.append(number)
        if len(said) > len(best.said):
            best = Quoted(entry, said, held, begins=begins and entry.anchored)
    return best if best.said else None


def _identifies(quoted: Quoted, text: Text) -> bool:
    """Whether what a text has in common with a message identifies it."""
    entry, count, length = quoted.entry, len(quoted.said), len(text.words)
    if entry.is_native and entry.words == count == length >= ENOUGH_WORDS:
        return True
    if text.is_logged_by(entry) and text.function:
        return count >= max(IN_A_ROW, ALMOST * entry.words)
    if PYTHONS_WORDS.search(text.whole):
        return False
    if entry.exception in PYTHONS_OWN and count < MANY_WORDS:
        return False
    is_most = count >= max(ENOUGH_WORDS, ALMOST * entry.words)
    is_part = count >= ENOUGH_OF_A_PART and count >= HALF * (length - _beside(quoted))
    is_all = count == length >= ENOUGH_WORDS
    return (is_most or is_part or is_all) and _tells_whose(quoted, text)


def _tells_whose(quoted: Quoted, text: Text) -> bool:
    """Whether the words that are quoted tell whose message it is.

    A few words that occur anywhere in a text have to tell more. The name of a product tells in
    front of a message, otherwise only with other words: messages of all kinds mention
    `torch.Tensor`.
    """
    entry, said = quoted.entry, quoted.said
    is_many = len(said) >= MANY_WORDS
    if text.is_logged_by(entry):
        return True
    if text.kind == entry.exception and is_a_products(entry.exception):
        return True
    if is_many and (quoted.begins or len(said) == entry.words):
        return True
    head = HEAD.match(text.whole)
    if head is not None and entry.product in words_of(head[0]):
        return True
    own = [word for word in said if len(word) > 1 and word != entry.product]
    uncommon = weight(own, text.names) + (quoted.begins and text.kind == entry.exception)
    is_scattered = len(said) < min(CHUNK, len(text.words))
    is_named = entry.product in words_of(text.whole)
    is_whole = len(said) == entry.words >= CHUNK and HALF * len(text.words) < len(said)
    is_long = is_many or is_whole or (quoted.begins and len(text.words) > len(said) >= CHUNK)
    return uncommon >= UNCOMMON_WORDS + is_scattered or (uncommon > 0 and (is_named or is_long))


def _beside(quoted: Quoted) -> int:
    """Most words next to what is quoted that belong to chunks of which a part is quoted."""
    held, last = quoted.held, len(quoted.entry.chunks) - 1
    return (CHUNK - 1) * ((held[0] > 0) + (held[-1] < last))
