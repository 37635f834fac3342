from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.fleet.pairing import Pair, examine, pairs_of

NODES = [f"n{number}" for number in range(1, 9)]


class Cluster:
    """Nodes and links that fail."""

    def __init__(self, bad: Sequence[str] = (), links: Sequence[Pair] = ()) -> None:
        self.bad = set(bad)
        self.links = {frozenset(link) for link in links}
        self.started = 0

    def run(self, pairs: Sequence[Pair]) -> dict[Pair, bool | None]:
        busy = [node for pair in pairs for node in pair]
        assert len(busy) == len(set(busy)), "a node is in two pairs at once"
        self.started += len(pairs)
        return {pair: self.passes(pair) for pair in pairs}

    def passes(self, pair: Pair) -> bool:
        broken = any(link <= set(pair) for link in self.links)
        return not (self.bad & set(pair) or broken)


def test_healthy_nodes_need_one_round() -> None:
    cluster = Cluster()
    found = examine(NODES, cluster.run)
    assert found.good == tuple(NODES)
    assert cluster.started == 4
    assert (found.bad, found.links, found.undecided) == ((), (), ())


@pytest.mark.parametrize("bad", NODES)
def test_one_bad_node_is_named(bad: str) -> None:
    found = examine(NODES, Cluster([bad]).run)
    assert found.bad == (bad,)
    assert set(found.good) == set(NODES) - {bad}


def test_a_bad_link_is_no_bad_node() -> None:
    found = examine(NODES, Cluster(links=[("n3", "n4")]).run)
    assert found.bad == ()
    assert found.links == (("n3", "n4"),)
    assert found.good == tuple(NODES)


def test_two_bad_nodes_in_one_pair() -> None:
    assert examine(NODES, Cluster(["n1", "n2"]).run).bad == ("n1", "n2")


@pytest.mark.parametrize("bad", ["n1", "n2"])
def test_of_two_nodes_the_bad_one_is_named(bad: str) -> None:
    found = examine(NODES[:2], Cluster([bad]).run)
    assert found.bad == (bad,)
    assert found.good == tuple({"n1", "n2"} - {bad})
    assert (found.links, found.undecided) == ((), ())


def test_of_two_nodes_that_train_alone_the_link_is_named() -> None:
    cluster = Cluster(links=[("n1", "n2")])
    found = examine(NODES[:2], cluster.run)
    assert (found.bad, found.undecided) == ((), ())
    assert found.links == (("n1", "n2"),)
    assert found.good == ("n1", "n2")
    assert cluster.started == 3  # the pair is not tried again


def test_a_network_that_joins_nobody() -> None:
    every = [(a, b) for a in NODES[:4] for b in NODES[:4] if a < b]
    found = examine(NODES[:4], Cluster(links=every).run)
    assert found.bad == ()
    assert set(found.links) >= {("n1", "n2"), ("n3", "n4")}


def test_one_bad_node_in_every_pair() -> None:
    found = examine(NODES, Cluster(["n1", "n4", "n5", "n8"]).run)
    assert found.bad == ("n1", "n4", "n5", "n8")
    assert found.good == ("n2", "n3", "n6", "n7")


def test_an_odd_number_of_nodes() -> None:
    assert examine(NODES[:5], Cluster(["n5"]).run).bad == ("n5",)
    assert examine(["n1"], Cluster().run).good == ("n1",)
    assert pairs_of([]) == []


def test_a_run_without_a_verdict_decides_nothing() -> None:
    def run(pairs: Sequence[Pair]) -> dict[Pair, bool | None]:
        return {pair: None if "n3" in pair else True for pair in pairs}

    found = examine(NODES, run)
    assert found.bad == ()
    assert found.undecided == ("n3",)


@given(st.sets(st.sampled_from(NODES), max_size=5))
def test_no_good_node_is_ever_called_bad(bad: set[str]) -> None:
    found = examine(NODES, Cluster(sorted(bad)).run)
    assert set(found.bad) == bad
    assert not set(found.good) & bad
