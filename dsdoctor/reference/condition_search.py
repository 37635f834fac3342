"""Finds conditions by words, for a reader who knows an error or a topic but no name."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Sequence

from dsdoctor.packs.registry import Registry, Unit

#: Most results; if there are more, the words are too general.
MOST = 15
#: A condition that mentions less than this share of the words, by weight, is left out.
LEAST_SHARE = 0.5
#: So is one that scores less than this share of the best.
LEAST_SCORE = 0.5
#: A word that no condition mentions has the weight of one that this many mention.
OF_UNKNOWN = 10
#: Added to a score if the words are adjacent; words that are all in a name score 4.
ADJACENT = 2
_WORD = re.compile(r"[a-z0-9]+")
_PLURAL = re.compile(r"(?<=[a-z]{3}[a-rt-z])s(?![a-z0-9])|(?<=gpu)s(?![a-z0-9])")
#: Words of a question that say nothing about its topic.
_FILLERS = frozenset(
    """
    a all am an and any are as at be but by can cannot could do does for from get gets had has have
    how i if in into is it its me my no not of off on or our out say says so than that the their
    then there these they this to use used uses using was we what when where which while who why
    will with work works you your
    """.split()  # noqa: SIM905  # as a list, one word a line
)


def search(registry: Registry, text: str, *, every: bool = False) -> list[Unit]:
    """Conditions that mention the words of a text, the best match first.

    A word's weight is its inverse document frequency: the fewer conditions mention it, the higher.
    It is multiplied by where a condition mentions it: 4 in its name, 1 in an example of a log line.
    A word that no condition mentions counts against all of them.

    Args:
        registry: the packs.
        text: a question or words in any order; case, punctuation and plurals do not matter.
        every: list only conditions that mention every word, except fillers.

    Returns:
        At most `MOST`; none if the text contains only fillers.
    """
    words = _words(text)
    wanted = set(words) - _FILLERS
    units = list(registry)
    found = [_prominence(unit, wanted) for unit in units]
    counts = Counter(word for mentioned in found for word in mentioned)
    # plus 1, so that a word that all of them mention has a weight too
    weight = {word: math.log(1 + len(units) / count) for word, count in counts.items()}
    unknown = math.log(1 + len(units) / OF_UNKNOWN) * len(wanted - weight.keys())
    whole = sum(weight.values()) + unknown
    rows = []
    for unit, mentioned in zip(units, found, strict=True):
        share = sum(weight[word] for word in mentioned)
        enough = len(mentioned) == len(wanted) if every else share >= LEAST_SHARE * whole
        if share and enough:
            score = sum(weight[word] * place for word, place in mentioned.items()) / whole
            rows.append((score + ADJACENT * _has_phrase(unit, words), unit))
    best = max((score for score, _ in rows), default=0)
    close = [row for row in rows if row[0] >= LEAST_SCORE * best]
    return [unit for _, unit in sorted(close, key=lambda row: -row[0])][:MOST]


def _words(text: str) -> list[str]:
    """The words of a text, without the s of a plural."""
    return _WORD.findall(_PLURAL.sub("", text.lower()))


def _prominence(unit: Unit, wanted: Collection[str]) -> dict[str, int]:
    """The words that a condition mentions, and how prominently: 4 is in its name."""
    found: dict[str, int] = {}
    places = list(_places(unit))
    for rank, texts in enumerate(places):
        seen = {word for text in texts for word in _words(text)}
        for word in seen.intersection(wanted):
            found.setdefault(word, len(places) - rank)
    return found


def _has_phrase(unit: Unit, words: Sequence[str]) -> bool:
    phrase = f" {' '.join(words)} "
    return any(phrase in f" {' '.join(_words(text))} " for rows in _places(unit) for text in rows)


def _places(unit: Unit) -> Iterable[Iterable[str]]:
    """The texts of a condition, the most prominent first."""
    yield [unit.condition.name, *unit.condition.formerly]
    yield [unit.title]
    yield [unit.page, unit.hint]
    yield [example for signature in unit.signatures for example in signature.examples]
