"""Finds conditions by words, for a reader who has an error or a topic and not a name."""

from __future__ import annotations

import re
from collections.abc import Iterable

from dsdoctor.registry import Registry, Unit

#: More rows than these help nobody; the words were too general.
MOST = 15
_WORD = re.compile(r"[a-z0-9]+")


def search(registry: Registry, text: str) -> list[Unit]:
    """Conditions that mention every word of a text; those with the words in their name come first.

    Args:
        registry: the packs.
        text: words in any order; case and punctuation do not matter.

    Returns:
        By how prominently they mention them: in the name, in the title, in the page or in a
        message that they are recognized by; `MOST` at most.
    """
    wanted = set(_WORD.findall(text.lower()))
    if not wanted:
        return []
    ranked = [(rank, unit) for unit in registry if (rank := _rank(unit, wanted)) is not None]
    return [unit for _, unit in sorted(ranked, key=lambda row: row[0])][:MOST]


def _rank(unit: Unit, wanted: set[str]) -> int | None:
    """Where the last of the words is found: 0 is the name; None if one is nowhere."""
    seen: set[str] = set()
    for rank, texts in enumerate(_places(unit)):
        for text in texts:
            seen.update(_WORD.findall(text.lower()))
        if wanted <= seen:
            return rank
    return None


def _places(unit: Unit) -> Iterable[Iterable[str]]:
    """The texts of a condition, the most telling first."""
    yield [unit.condition.name, *unit.condition.formerly]
    yield [unit.title]
    yield [unit.page]
    yield [example for signature in unit.signatures for example in signature.examples]
