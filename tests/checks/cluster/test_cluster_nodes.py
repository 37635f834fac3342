"""Rows of `node-failed` and `kubernetes-gpus-not-offered`."""

from __future__ import annotations

import pytest

from dsdoctor.api import ClusterNode, ClusterNodes
from dsdoctor.testing import assert_fail, assert_ok, assert_skip, assert_warn, judge
from dsdoctor_checks.cluster import kubernetes_gpus_not_offered, node_failed


def nodes(*states: str) -> ClusterNodes:
    rows = tuple(
        ClusterNode(names=f"n{place}", scheduler="slurm", states=(state,))
        for place, state in enumerate(states)
    )
    return ClusterNodes(nodes=rows)


def of_kubernetes(has: int | None, offers: int | None, *, labelled: bool = False) -> ClusterNodes:
    node = ClusterNode(
        names="n1", scheduler="kubernetes", gpus=has, gpus_usable=offers, gpu_labelled=labelled
    )
    return ClusterNodes(nodes=(node,))


def test_nodes_in_service_are_ok() -> None:
    judged = judge(node_failed.nodes_are_in_service, cluster_nodes=nodes("idle", "mixed", "resv"))
    assert_ok(judged)


def test_a_node_that_is_down_fails() -> None:
    judged = judge(node_failed.nodes_are_in_service, cluster_nodes=nodes("down", "idle"))
    assert_fail(judged, "n0 is out of service (down)")


def test_a_drained_node_warns() -> None:
    judged = judge(node_failed.nodes_are_in_service, cluster_nodes=nodes("drained"))
    assert_warn(judged, "n0 is out of service (drained)")


def test_many_nodes_are_counted() -> None:
    judged = judge(node_failed.nodes_are_in_service, cluster_nodes=nodes(*["drain"] * 11))
    assert_warn(judged, "n7 and 3 more are out of service (drained)")


def test_without_nodes_nothing_is_judged() -> None:
    assert_skip(judge(node_failed.nodes_are_in_service, cluster_nodes=ClusterNodes()))


CHECK = kubernetes_gpus_not_offered.nodes_offer_their_gpus


def test_all_gpus_offered_is_ok() -> None:
    assert_ok(judge(CHECK, cluster_nodes=of_kubernetes(8, 8)))


@pytest.mark.parametrize("labelled", [True, False])
def test_no_gpu_is_wrong_only_where_one_is_expected(labelled: bool) -> None:
    judged = judge(CHECK, cluster_nodes=of_kubernetes(0, 0, labelled=labelled))
    (assert_fail if labelled else assert_ok)(judged)


def test_one_of_eight_missing_warns() -> None:
    assert_warn(judge(CHECK, cluster_nodes=of_kubernetes(8, 7)), "offers 7 GPUs")


def test_no_capacity_is_not_judged() -> None:
    assert_skip(judge(CHECK, cluster_nodes=of_kubernetes(None, None)))
