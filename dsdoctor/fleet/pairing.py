"""Which nodes to start together to find a bad node: first pairs, then suspects. Pure.

If a pair fails, one of its two nodes is bad. Each of the two is then tried with a partner that has
passed. A node that fails again is bad; if neither fails, the link between the two is bad. If no
pair passes, each node is first tried alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

Pair = tuple[str, ...]
#: Runs pairs that share no node, possibly in parallel; True = passed, None = no verdict.
Runner = Callable[[Sequence[Pair]], dict[Pair, bool | None]]


class PairingVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """The result of the pairs.

    Attributes:
        good: nodes that trained with a partner, or alone if no two nodes train together.
        bad: nodes that failed with a good partner, or alone.
        links: pairs that fail together, although each node is good alone or with another partner.
        undecided: nodes without a good partner, or whose runs gave no verdict.
        rounds: pairs of each round, and how they ended.
    """

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    links: tuple[Pair, ...] = ()
    undecided: tuple[str, ...] = ()
    rounds: tuple[dict[str, bool | None], ...] = ()


def pairs_of(nodes: Sequence[str]) -> list[Pair]:
    """Pairs of neighbors; an odd node joins the last pair.

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
    """Finds the bad nodes in at most two rounds of pairs, plus one per shared partner."""
    rounds: list[dict[str, bool | None]] = []

    def run_round(pairs: Sequence[Pair]) -> dict[Pair, bool | None]:
        found = run(pairs)
        rounds.append({"+".join(pair): found.get(pair) for pair in pairs})
        return found

    first = run_round(pairs_of(nodes))
    good = [node for pair, passed in first.items() if passed for node in pair]
    failed = [pair for pair, passed in first.items() if not passed]
    suspects = [node for pair in failed for node in pair]
    bad: list[str] = []
    parted: list[Pair] = []
    if not good:
        # perhaps every pair contains a bad node: try each alone, to find good partners
        alone = run_round([(node,) for node in suspects])
        bad = [pair[0] for pair, passed in alone.items() if passed is False]
        trusted = [pair[0] for pair, passed in alone.items() if passed]
        tried = {frozenset(pair) for pair in failed}
        others = [
            pair for pair in pairs_of(_mixed(trusted, failed)) if frozenset(pair) not in tried
        ]
        others = [pair for pair in others if len(pair) > 1]
        mixed = run_round(others) if others else {}
        good = [node for pair, passed in mixed.items() if passed for node in pair]
        if not good:
            # no two of them train together, but each trains alone: the connection is bad
            good = trusted
            again = [pair for pair, passed in mixed.items() if passed is False]
            parted = [pair for pair in (*failed, *again) if set(pair) <= set(trusted)]
        suspects = [node for node in suspects if node not in good and node not in bad]
    retried: dict[str, bool | None] = {}
    pending = list(suspects)
    while pending and good and not parted:
        wave = list(zip(pending, good, strict=False))
        results = run_round([(suspect, partner) for suspect, partner in wave])
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
    """Trusted nodes in an order that does not pair two that have just failed together."""
    seats = {node: seat for pair in failed for seat, node in enumerate(pair)}
    return sorted(trusted, key=lambda node: seats.get(node, 0))


def _in_order(nodes: Sequence[str], chosen: Iterable[str]) -> tuple[str, ...]:
    wanted = set(chosen)
    return tuple(node for node in nodes if node in wanted)
