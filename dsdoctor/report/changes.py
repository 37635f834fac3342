"""Differences on one screen: verdicts first, then what matters, the rest counted. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from dsdoctor.model.plain import shortened
from dsdoctor.report.text import clean

#: Lines of each part unless -v is given; with headings and counts they fit on 30 lines.
MOST_VERDICTS = 12
MOST_TRAITS = 10
MOST_KINDS = 4
_LONGEST = 160
_ORDER = ("fail", "crash", "unknown", "warn", "skip", "ok", "-")


def worst_first(rows: Iterable[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    """Verdicts that became worse first, then by name.

    >>> worst_first([("a", "fail", "ok"), ("b", "ok", "fail"), ("c", "ok", "warn")])
    [('b', 'ok', 'fail'), ('c', 'ok', 'warn'), ('a', 'fail', 'ok')]
    """

    def rank(row: tuple[str, str, str]) -> tuple[int, int, str]:
        place = [_ORDER.index(word) if word in _ORDER else len(_ORDER) for word in row[1:]]
        return place[1], place[0], row[0]

    return sorted(rows, key=rank)


def first_lines(lines: Sequence[str], most: int, what: str) -> list[str]:
    """The first lines, and a line with the number of those left out.

    >>> first_lines(["a", "b", "c"], 2, "conditions")
    ['a', '… 2 more conditions (-v)']
    """
    if len(lines) <= most:
        return list(lines)
    return [*lines[: most - 1], f"… {len(lines) - most + 1} more {what} (-v)"]


def line(name: str, before: Any, after: Any, *, verbose: bool = False) -> str:
    """One difference; a long value is truncated unless `verbose` is set."""
    text = clean(f"{name}: {before} -> {after}")
    return text if verbose else shortened(text, _LONGEST)


def text(
    verdicts: Sequence[str],
    traits: Sequence[str],
    facts: Sequence[tuple[str, Any, Any]],
    *,
    verbose: bool = False,
) -> str:
    """The whole comparison.

    Args:
        verdicts: lines about conditions.
        traits: lines about values that should be the same everywhere.
        facts: dotted name, value before, value after.
        verbose: leave nothing out.
    """
    if verbose:
        rows = [line(*fact, verbose=True) for fact in facts]
        parts = [list(verdicts), list(traits), rows]
    else:
        parts = [
            first_lines(verdicts, MOST_VERDICTS, "conditions"),
            first_lines(traits, MOST_TRAITS, "settings and versions"),
            _counted(facts),
        ]
    blocks = ["\n".join(part) for part in parts if part]
    return "\n\n".join(blocks or ["no difference"]) + "\n"


def _counted(facts: Sequence[tuple[str, Any, Any]]) -> list[str]:
    if not facts:
        return []
    kinds = Counter(name.partition(".")[0] for name, _, _ in facts).most_common()
    lines = [f"  {kind}: {count}" for kind, count in kinds[:MOST_KINDS]]
    left = kinds[MOST_KINDS:]
    if left:
        lines.append(f"  {len(left)} other facts: {sum(count for _, count in left)}")
    noun = "value differs" if len(facts) == 1 else "values differ"
    return [f"{len(facts)} {noun} (-v shows them):", *lines]
