"""Which nodes to start together so that one bad node is named: pairs, then suspects. Pure.

A pair that fails says that one of two is bad. Each of the two is then tried with a partner that
has passed: who fails again is bad; if neither does, the link between the two is. Where no pair
passes, each node is tried alone first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import msgspec

Gang = tuple[str, ...]
#: Runs gangs that share no node, at once if the runner likes; True = passed, None = no verdict.
Runner = Callable[[Sequence[Gang]], dict[Gang, bool | None]]


class GangVerdict(msgspec.Struct, frozen=True, kw_only=True):
    """What the gangs have shown.

    Attributes:
        good: nodes that trained with a partner, or alone where no two train together.
        bad: nodes that failed with a partner that is good, or alone.
        links: gangs that fail together, though each node is good alone or with another.
        undecided: nodes for which no good partner was left, or whose runs gave no verdict.
        rounds: gangs of each round, and how they ended.
    """

    good: tuple[str, ...] = ()
    bad: tuple[str, ...] = ()
    links: tuple[Gang, ...] = ()
    undecided: tuple[str, ...] = ()
    rounds: tuple[dict[str, bool | None], ...] = ()


def pairs(nodes: Sequence[str]) -> list[Gang]:
    """Neighbours in twos; an odd one joins the last pair.

    >>> pairs(["a", "b", "c", "d", "e"])
    [('a', 'b'), ('c', 'd', 'e')]
    >>> pairs(["a"])
    [('a',)]
    """
    gangs = [tuple(nodes[start : start + 2]) for start in range(0, len(nodes), 2)]
    if len(gangs) > 1 and len(gangs[-1]) == 1:
        gangs[-2:] = [gangs[-2] + gangs[-1]]
    return gangs


def examine(nodes: Sequence[str], run: Runner) -> GangVerdict:
    """Finds the bad nodes in at most two rounds of pairs and as many as suspects share partners."""
    rounds: list[dict[str, bool | None]] = []

    def play(gangs: Sequence[Gang]) -> dict[Gang, bool | None]:
        found = run(gangs)
        rounds.append({"+".join(gang): found.get(gang) for gang in gangs})
        return found

    first = play(pairs(nodes))
    good = [node for gang, passed in first.items() if passed for node in gang]
    failed = [gang for gang, passed in first.items() if not passed]
    suspects = [node for gang in failed for node in gang]
    bad: list[str] = []
    parted: list[Gang] = []
    if not good:
        # perhaps every pair holds a bad one: each alone, to find partners to trust
        alone = play([(node,) for node in suspects])
        bad = [gang[0] for gang, passed in alone.items() if passed is False]
        trusted = [gang[0] for gang, passed in alone.items() if passed]
        tried = {frozenset(gang) for gang in failed}
        others = [gang for gang in pairs(_mixed(trusted, failed)) if frozenset(gang) not in tried]
        others = [gang for gang in others if len(gang) > 1]
        mixed = play(others) if others else {}
        good = [node for gang, passed in mixed.items() if passed for node in gang]
        if not good:
            # no two of them train together, though each does alone: what is between them is bad
            good = trusted
            again = [gang for gang, passed in mixed.items() if passed is False]
            parted = [gang for gang in (*failed, *again) if set(gang) <= set(trusted)]
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
    links = [gang for gang in failed if first[gang] is False and cleared.issuperset(gang)]
    links += [gang for gang in parted if first.get(gang) is not None or gang not in failed]
    settled = {*good, *bad, *cleared}
    return GangVerdict(
        good=_in_order(nodes, {*good, *cleared}),
        bad=_in_order(nodes, bad),
        links=tuple(links),
        undecided=_in_order(nodes, (node for node in nodes if node not in settled)),
        rounds=tuple(rounds),
    )


def _mixed(trusted: Sequence[str], failed: Sequence[Gang]) -> list[str]:
    """Trusted nodes in an order that pairs no two that have just failed together."""
    seats = {node: seat for gang in failed for seat, node in enumerate(gang)}
    return sorted(trusted, key=lambda node: seats.get(node, 0))


def _in_order(nodes: Sequence[str], chosen: Iterable[str]) -> tuple[str, ...]:
    wanted = set(chosen)
    return tuple(node for node in nodes if node in wanted)
