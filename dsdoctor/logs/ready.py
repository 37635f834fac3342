"""Signatures, prepared for a search: indexed by literal, with patterns compiled on demand."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable, Sequence

from dsdoctor.logs.anchors import matcher
from dsdoctor.logs.errors import ERROR_LITERALS
from dsdoctor.logs.knowledge import Known
from dsdoctor.logs.launcher_lines import FAILED, FIRST, RESTART
from dsdoctor.logs.marks import MARK_LITERALS
from dsdoctor.logs.necessary import necessary
from dsdoctor.logs.runs import STARTS
from dsdoctor.model.condition import Boilerplate

#: Sets of literals whose signatures are cached.
MOST_SETS = 10_000


@functools.lru_cache(maxsize=1024)
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


class Ready:
    """A signature whose pattern is compiled when one of its literals first occurs."""

    def __init__(self, number: int, known: Known) -> None:
        self.number = number
        self.known = known

    @functools.cached_property
    def pattern(self) -> re.Pattern[str]:
        """The compiled pattern."""
        return re.compile(self.known.signature.pattern)


class ReadySignatures:
    """Signatures, prepared for a search.

    Attributes:
        known: the signatures.
        own: dsdoctor's own titles and hints, which are not evidence.
        boilerplate: sentences that are not evidence: a literal and the pattern of each.
        flags: literals of `requires`, `unless` and `not_after`.
        by_literal: maps a literal to the numbers of its signatures.
        number_of: maps the identity of a signature to its number.
    """

    def __init__(
        self,
        known: Sequence[Known],
        engine: str = "auto",
        boilerplate: Sequence[Boilerplate] = (),
        own: Iterable[str] = (),
    ) -> None:
        self.own = tuple(own)
        self.boilerplate = [
            (words, one.pattern) for one in boilerplate for words in necessary(one.pattern)
        ]
        self.flags: set[str] = set()
        self._speaking: dict[frozenset[str], list[tuple[int, Ready]]] = {}
        self._ready: dict[int, Ready] = {}
        self.by_literal: dict[str, list[int]] = {}
        self.number_of = {id(item): number for number, item in enumerate(known)}
        self.known = known  # the numbers are by identity
        for number, item in enumerate(known):
            signature = item.signature
            for literal in necessary(signature.pattern):
                self.by_literal.setdefault(literal, []).append(number)
            if signature.requires or signature.unless or signature.not_after:
                self.flags.update(signature.requires, signature.unless, signature.not_after)
        literals = {
            *self.by_literal, *self.flags, *ERROR_LITERALS, *MARK_LITERALS,
            RESTART, FAILED, FIRST,
        }  # fmt: skip
        self._starts = frozenset(STARTS) - literals
        self._matcher = matcher(literals | self._starts, engine)

    @property
    def engine(self) -> str:
        """Name of the engine that finds literals."""
        return self._matcher.name

    def speaking(self, literals: set[str]) -> list[tuple[int, Ready]]:
        """The signatures with any of these literals, by number."""
        key = frozenset(literals)
        found = self._speaking.get(key)
        if found is None:
            if len(self._speaking) >= MOST_SETS:
                self._speaking.clear()
            numbers = {one for text in literals for one in self.by_literal.get(text, ())}
            found = [(number, self._ready_of(number)) for number in sorted(numbers)]
            self._speaking[key] = found
        return found

    def _ready_of(self, number: int) -> Ready:
        ready = self._ready.get(number)
        if ready is None:
            ready = self._ready[number] = Ready(number, self.known[number])
        return ready

    def bare(self, text: str) -> str:
        """A line without the sentences that are not evidence."""
        for words, pattern in self.boilerplate:
            if words in text:
                text = _compiled(pattern).sub("", text)
        for sentence in self.own:
            if sentence in text:
                text = text.replace(sentence, "")
        return text

    def hot(self, data: bytes) -> tuple[dict[int, set[str]], list[int]]:
        """Maps the start of a line to its literals; and starts of lines that begin a run."""
        hot = self._matcher.find(data)
        started = [place for place, literals in hot.items() if not literals.isdisjoint(STARTS)]
        for place in started:
            hot[place] -= self._starts
            if not hot[place]:
                del hot[place]
        return hot, started
