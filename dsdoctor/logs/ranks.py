"""Ranks that report different values although they should agree (guide row B9)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from dsdoctor.logs.hits import Hit

#: Most ranks that are listed.
MOST_NAMED = 4
#: Most different values that are kept.
MOST_DIFFERENT = 12


def _compared(hit: Hit) -> tuple[tuple[str, str], ...]:
    """What a hit shows in the groups of its pattern that are compared between ranks."""
    names = hit.known.signature.compared
    return tuple((name, hit.groups[name]) for name in names if name in hit.groups)


def adds(hit: Hit, kept: Iterable[Hit]) -> bool:
    """Whether a hit adds a value to those that are kept, or another rank to a kept value."""
    ranks: dict[tuple[tuple[str, str], ...], set[int | None]] = {}
    for other in kept:
        ranks.setdefault(_compared(other), set()).add(other.rank)
    alike = ranks.get(_compared(hit))
    if alike is None:
        return len(ranks) < MOST_DIFFERENT
    return hit.rank not in alike and len(alike) <= MOST_NAMED  # one more than is listed


def disagreement(hits: Iterable[Hit]) -> str:
    """What ranks show in the compared groups of a pattern, "" if they agree or there is only one.

    Ranks that wait in different collectives have taken different paths through the program: an
    evaluation, a save or a last batch that only some of them run.
    """
    shown: dict[int, tuple[tuple[str, str], ...]] = {}
    for hit in hits:
        values = _compared(hit)
        if hit.rank is not None and values:
            shown.setdefault(hit.rank, values)
    if len(set(shown.values())) < 2:  # noqa: PLR2004  # two make a difference
        return ""
    kinds: dict[tuple[tuple[str, str], ...], list[int]] = {}
    for rank in sorted(shown):
        kinds.setdefault(shown[rank], []).append(rank)
    parts = []
    for values, members in list(kinds.items())[:MOST_NAMED]:
        more = ", …" if len(members) > MOST_NAMED else ""
        numbers = ", ".join(map(str, members[:MOST_NAMED])) + more
        word = "rank" if len(members) == 1 else "ranks"
        what = " ".join(value for _, value in values)
        parts.append(f"{word} {numbers} in {what}")
    return "; ".join(parts)


def one_of_each_first(hits: Sequence[Hit]) -> list[Hit]:
    """Hits in order, but with the first hit of each value before all others."""
    values = [_compared(hit) for hit in hits]
    return [
        *(hit for place, hit in enumerate(hits) if values[place] not in values[:place]),
        *(hit for place, hit in enumerate(hits) if values[place] in values[:place]),
    ]
