"""Which nodes to start together so that one bad node is named: pairs, then suspects. Pure.

A pair that fails says that one of two is bad. Each of the two is then tried with a partner that
has passed: who fails again is bad; if neither does, the link between the two is. Where no pair
passes, each node is tried alone first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

Pair = tuple[str, ...]
#: Runs pairs that share no node, at once if the runner likes; True = passed, None = no verdict.
Runner = Callable[[Sequence[Pair]], dict[Pair, bool | None]]


class PairingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the pairs have shown.

    Attributes:
        good: nodes that trained with a partner, or alone where no two train together.
        bad: nodes that failed with a partner that is good, or alone.
        links: pairs that fail together, though each node is good alone or with another.
        undecided: nodes for which no good partner was left, or whose runs gave no verdict.
        rounds: pairs of each round, and how they ended.
    """

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    links: tuple[Pair, ...] = ()
    undecided: tuple[str, ...] = ()
    rounds: tuple[dict[str, bool | None], ...] = ()


def pairs_of(nodes: Sequence[str]) -> list[Pair]:
    """Neighbors in twos; an odd one joins the last pair.

    >>> pairs_of(["a", "b", "c", "d", "e"])
    [('a', 'b'), ('c', 'd', 'e')]
    >>> pairs_of(["a"])
    [('a',)]
    """
    made = [tuple(nodes[start : start + 2]) for start in range(0, len(nodes), 2)]
    if len(made) > 1 and len(made[-1]) == 1:
        made[-2:] = [made[-2] + made[-1]]
    return made


def examine(nodes: Sequence[str], run: Runner) -> PairingVerdict:
    """Finds the bad nodes in at most two rounds of pairs and as many as suspects share partners."""
    rounds: list[dict[str, bool | None]] = []

    def play(pairs: Sequence[Pair]) -> dict[Pair, bool | None]:
        found = run(pairs)
        rounds.append({"+".join(pair): found.get(pair) for pair in pairs})
        return found

    first = play(pairs_of(nodes))
    good = [node for pair, passed in first.items() if passed for node in pair]
    failed = [pair for pair, passed in first.items() if not passed]
    suspects = [node for pair in failed for node in pair]
    bad: list[str] = []
    parted: list[Pair] = []
    if not good:
        # perhaps every pair contains a bad one: each alone, to find partners to trust
        alone = play([(node,) for node in suspects])
        bad = [pair[0] for pair, passed in alone.items() if passed is False]
        trusted = [pair[0] for pair, passed in alone.items() if passed]
        tried = {frozenset(pair) for pair in failed}
        others = [
            pair for pair in pairs_of(_mixed(trusted, failed)) if frozenset(pair) not in tried
        ]
        others = [pair for pair in others if len(pair) > 1]
        mixed = play(others) if others else {}
        good = [node for pair, passed in mixed.items() if passed for node in pair]
        if not good:
            # no two of them train together, though each does alone: what is between them is bad
            good = trusted
            again = [pair for pair, passed in mixed.items() if passed is False]
            parted = [pair for pair in (*failed, *again) if set(pair) <= set(trusted)]
        suspects = [node for node in suspects if node not in good and node not in bad]
    retried: dict[str, bool | None] = {}
    pending = list(suspects)
    while pending and good and not parted:
        wave = list(zip(pending, good, strict=False))
        results = play([(suspect, partner) for suspect, partner in wave])
        for suspect, partner in wave:
            retried[suspect] = results.get((suspect, partner))
        pending = pending[len(wave) :]
    bad += [node for node, passed in retried.items() if passed is False]
    cleared = {node for node, passed in retried.items() if passed}
    links = [pair for pair in failed if first[pair] is False and cleared.issuperset(pair)]
    links += [pair for pair in parted if first.get(pair) is not None or pair not in failed]
    settled = {*good, *bad, *cleared}
    return PairingVerdict(
        good=_in_order(nodes, {*good, *cleared}),
        bad=_in_order(nodes, bad),
        links=tuple(links),
        undecided=_in_order(nodes, (node for node in nodes if node not in settled)),
        rounds=tuple(rounds),
    )


def _mixed(trusted: Sequence[str], failed: Sequence[Pair]) -> list[str]:
    """Trusted nodes in an order that pairs no two that have just failed together."""
    seats = {node: seat for pair in failed for seat, node in enumerate(pair)}
    return sorted(trusted, key=lambda node: seats.get(node, 0))


def _in_order(nodes: Sequence[str], chosen: Iterable[str]) -> tuple[str, ...]:
    wanted = set(chosen)
    return tuple(node for node in nodes if node in wanted)
