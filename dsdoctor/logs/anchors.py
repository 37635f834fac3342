"""Which literals occur in which lines of a block: three engines with the same answer.

`words` is pure Python. A log of a gigabyte has a few thousand different words, so a block is split
into its set of words at the speed of C, and a literal is searched for only if the block contains
all of its words. `hyperscan` (the extra `fast`) finds all literals in one pass with SIMD
instructions. Both take longer to set up than `grams` takes to search a short log.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Collection, Iterable
from typing import Any, Protocol

#: Words that are common in the logs of healthy runs, so they select few literals.
COMMON = frozenset(
    b"a all and are as at be by config cpu cuda CUDA data deepspeed DeepSpeed device env epoch "
    b"false File for found from get gpu GPU has hf import in info INFO init is it line "
    b"loading local loss main memory model module name No node not of on or process py python "
    b"rank required return run self set size site step than that the this to torch train training "
    b"True type unable Unable use used using utils value version warning WARNING was we with "
    b"world x you your".split()
)
LEAST_WORD = 1
#: Words that are remembered; beyond that all are forgotten, so memory stays bounded.
MOST_WORDS = 100_000
#: A longer word that no literal contains is not remembered.
LONGEST_WORD = 48

#: Keeps letters, turns newlines and carriage returns into newlines, and all else into spaces;
#: digits are deleted.
_LETTERS = bytes(
    code
    if 65 <= code <= 90 or 97 <= code <= 122  # noqa: PLR2004  # A-Z, a-z
    else 10
    if code in b"\n\r"
    else 32
    for code in range(256)
)
_DIGITS = b"0123456789"

Hot = dict[int, set[str]]
"""Start of a line to the literals in it."""


class Matcher(Protocol):
    """A search engine.

    Attributes:
        name: `grams`, `words` or `hyperscan`.
    """

    @property
    def name(self) -> str: ...  # noqa: D102

    def find(self, data: bytes) -> Hot:
        """Maps the start of each line that contains a literal to all literals in that line."""
        ...


def _searchable(literals: Iterable[str]) -> list[tuple[str, bytes]]:
    """Literals that can occur in a line at all."""
    return [
        (text, text.encode())
        for text in set(literals)
        if text and "\n" not in text and "\0" not in text
    ]


#: A word of a literal, and whether the log's word may continue on its left and on its right.
_Atom = tuple[bytes, bool, bool]


class _Literal:
    """A literal, the words that a block must contain for it, and the rarest of them (`key`)."""

    def __init__(self, text: str, raw: bytes) -> None:
        self.text, self.raw = text, raw
        spread = raw.translate(_LETTERS, _DIGITS)
        self.atoms: set[_Atom] = set()
        at = 0
        for word in spread.split():
            at = spread.index(word, at)
            left, right = at == 0, at + len(word) == len(spread)
            at += len(word)
            if len(word) >= LEAST_WORD:
                self.atoms.add((word, left, right))
        self.key = max(self.atoms, default=None, key=_selectivity)
        #: Bytes so rare that the block is searched for them first.
        self.rare = [bytes([code]) for code in raw if code in _RARE or code > _ASCII]


_RARE = b"\\+()#<>|&$*@!;^~`{}"
_ASCII = 127


def _selectivity(atom: _Atom) -> tuple[bool, bool, int]:
    word, left, right = atom
    return (word not in COMMON, not (left and right), len(word))


def _words(data: bytes) -> set[bytes]:
    """The words of a block.

    Without digits most progress lines are identical, so few lines are split into words. If a
    literal occurs in a line, it also occurs after the digits of both are deleted.
    """
    lines = set(data.translate(_LETTERS, _DIGITS).split(b"\n"))
    return set(b" ".join(lines).split())


class WordMatcher:
    """Pure Python: compares sets of words, then searches for the literals that may occur."""

    name = "words"

    def __init__(self, literals: Iterable[str]) -> None:
        everything = [_Literal(text, raw) for text, raw in sorted(_searchable(literals))]
        self._loose = [literal for literal in everything if literal.key is None]
        self._by_key: dict[_Atom, list[_Literal]] = {}
        for literal in everything:
            if literal.key is not None:
                self._by_key.setdefault(literal.key, []).append(literal)
        atoms = {atom for literal in everything for atom in literal.atoms}
        self._exact = {atom[0]: atom for atom in atoms if not (atom[1] or atom[2])}
        self._open = [
            ((b"" if left else b" ") + word + (b"" if right else b" "), (word, left, right))
            for word, left, right in sorted(atoms)
            if left or right
        ]
        self._cold: set[bytes] = set()
        self._hot: dict[bytes, set[_Atom]] = {}
        self._hot_words: set[bytes] = set()

    def _learn(self, new: set[bytes]) -> None:
        """Sorts new words into those that a literal needs (hot) and all others (cold)."""
        joined = b" " + b" ".join(new) + b" "
        found: dict[bytes, set[_Atom]] = {
            word: {self._exact[word]} for word in new & self._exact.keys()
        }
        for needle, atom in self._open:
            position = joined.find(needle)
            while position >= 0:
                start = joined.rfind(b" ", 0, position + 1) + 1
                end = joined.find(b" ", max(start, position + 1))
                found.setdefault(joined[start:end], set()).add(atom)
                position = joined.find(needle, end)
        self._hot.update(found)
        self._hot_words.update(found)
        self._cold |= {word for word in new - found.keys() if len(word) <= LONGEST_WORD}

    def _possible(self, data: bytes) -> list[_Literal]:
        """The literals all of whose words are in the block."""
        words = _words(data)
        if len(self._cold) + len(self._hot) > MOST_WORDS:
            self._cold.clear()
            self._hot.clear()
            self._hot_words.clear()
        new = words - self._cold - self._hot_words
        if new:
            self._learn(new)
        present: set[_Atom] = set()
        for word in words & self._hot_words:
            present |= self._hot[word]
        wanted = list(self._loose)
        for atom in present & self._by_key.keys():
            wanted += [one for one in self._by_key[atom] if one.atoms <= present]
        rare: dict[bytes, bool] = {}
        for literal in wanted:
            for byte in literal.rare:
                if byte not in rare:
                    rare[byte] = byte in data
        return [one for one in wanted if all(rare[byte] for byte in one.rare)]

    def find(self, data: bytes) -> Hot:
        """See `Matcher.find`."""
        hot: Hot = {}
        for literal in self._possible(data):
            _note(hot, data, literal.text, literal.raw)
        return hot


class HyperscanMatcher:
    """The library Hyperscan (or its fork Vectorscan), through the package `hyperscan`."""

    name = "hyperscan"

    def __init__(self, literals: Iterable[str]) -> None:
        library: Any = importlib.import_module("hyperscan")
        self._rows = sorted(_searchable(literals))
        self._base: Any = library.Database(mode=library.HS_MODE_BLOCK)
        if self._rows:
            self._base.compile(
                expressions=[raw for _, raw in self._rows],
                ids=list(range(len(self._rows))),
                elements=len(self._rows),
                flags=0,
                literal=True,
            )

    def find(self, data: bytes) -> Hot:
        """See `Matcher.find`."""
        matches: list[tuple[int, int]] = []
        if not self._rows or not data:
            return {}
        add = matches.append

        def seen(number: int, _start: int, end: int, _flags: int, _context: object) -> None:
            add((end, number))

        self._base.scan(data, match_event_handler=seen)
        hot: Hot = {}
        line_end = -1
        texts: set[str] = set()
        rows = self._rows
        for end, number in matches:
            if end > line_end:
                start = data.rfind(b"\n", 0, end) + 1
                line_end = data.find(b"\n", end)
                if line_end < 0:
                    line_end = len(data)
                texts = hot.setdefault(start, set())
            elif end <= start:  # an engine that does not report in order
                texts = hot.setdefault(data.rfind(b"\n", 0, end) + 1, set())
                line_end = -1
            texts.add(rows[number][0])
        return hot


class GramMatcher:
    """Almost no setup: searches for the literals whose four-byte groups all occur in the block.

    The block is read as four-byte numbers from each of its first four offsets, a literal only from
    its start, so the numbers of a literal that occurs are among those of the block.
    """

    name = "grams"

    def __init__(self, literals: Iterable[str]) -> None:
        self._rows = _searchable(literals)
        #: By its first number, which few literals share with a block.
        self._first = [(int.from_bytes(row[1][:GRAM], sys.byteorder), row) for row in self._rows]

    def find(self, data: bytes) -> Hot:
        """See `Matcher.find`."""
        hot: Hot = {}
        for text, raw in self._rows if len(data) <= TINY else self._possible(data):
            if raw in data:
                _note(hot, data, text, raw)
        return hot

    def _possible(self, data: bytes) -> Iterable[tuple[str, bytes]]:
        view = memoryview(data)
        numbers: set[int] = set()
        for first in range(GRAM):
            last = first + (len(data) - first) // GRAM * GRAM
            numbers.update(view[first:last].cast("I"))
        holds = numbers.issuperset
        return [
            row
            for begin, row in self._first
            if (begin in numbers or len(row[1]) < GRAM)
            and holds(memoryview(row[1])[: len(row[1]) & -GRAM].cast("I"))
        ]


def _note(hot: Hot, data: bytes, text: str, raw: bytes) -> None:
    """Records each line that contains a literal."""
    position = data.find(raw)
    while position >= 0:
        hot.setdefault(data.rfind(b"\n", 0, position) + 1, set()).add(text)
        end = data.find(b"\n", position + len(raw))
        position = data.find(raw, end) if end >= 0 else -1


#: Bytes that are searched before the next faster engine is set up.
SHORT, MEDIUM = 256 << 10, 768 << 10
#: A block of at most so many bytes is searched for every literal.
TINY = 1 << 10
#: Size of an `unsigned int`, which `memoryview.cast` reads.
GRAM = 4


class GrowingMatcher:
    """Starts with the engine that needs no setup, and switches to faster ones in a long log.

    Attributes:
        name: the engine in use.
    """

    def __init__(self, literals: Collection[str]) -> None:
        self._literals = literals
        self._engine: Matcher = GramMatcher(literals)
        self._seen = 0
        self._fastest = False

    @property
    def name(self) -> str:  # noqa: D102
        return self._engine.name

    def find(self, data: bytes) -> Hot:
        """See `Matcher.find`."""
        self._seen += len(data)
        if self._seen > MEDIUM and not self._fastest:
            self._fastest = True
            self._engine = fastest(self._literals, self._engine)
        elif self._seen > SHORT and isinstance(self._engine, GramMatcher):
            self._engine = WordMatcher(self._literals)
        return self._engine.find(data)


ENGINES: dict[str, Callable[[Iterable[str]], Matcher]] = {
    "hyperscan": HyperscanMatcher,
    "grams": GramMatcher,
    "words": WordMatcher,
}


def fastest(literals: Collection[str], ready: Matcher | None = None) -> Matcher:
    """The fastest engine that works here; `ready` itself if that is the one."""
    try:
        return HyperscanMatcher(literals)
    except Exception:  # noqa: BLE001  # absent, or built for another processor: pure Python does it
        return ready if isinstance(ready, WordMatcher) else WordMatcher(literals)


def matcher(literals: Collection[str], engine: str = "auto") -> Matcher:
    """An engine by name; `auto` chooses by the length of the text.

    Raises:
        ImportError: the engine's library is not installed.
    """
    if engine == "auto":
        return GrowingMatcher(literals)
    return ENGINES[engine](literals)
