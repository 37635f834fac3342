"""Ranks that say different things where they should agree (guide row B9)."""

from __future__ import annotations

from collections.abc import Iterable

from dsdoctor.logs.hits import Hit

#: Ranks that are named.
MOST_NAMED = 4


def disagreement(hits: Iterable[Hit]) -> str:
    """What ranks show in the compared groups of a pattern, "" where they agree or are one.

    Ranks that wait in different collectives have taken different ways through the program: an
    evaluation, a save or a last batch that only some of them run.
    """
    shown: dict[int, tuple[tuple[str, str], ...]] = {}
    for hit in hits:
        names = hit.known.signature.compared
        values = tuple((name, hit.groups[name]) for name in names if name in hit.groups)
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
