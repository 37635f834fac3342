"""The heat map of a fleet."""

from __future__ import annotations

import re

from tests.html import samples


def test_ten_thousand_nodes_are_a_small_page() -> None:
    text = samples.fleet(10_000)
    assert len(text.encode()) < 1_000_000
    assert "10000 nodes" in text
    assert text.count("<rect") < 3000, "neighbors share a column"
    assert "fleet-node-silent" in text
    assert "gpu-lost" in text


def test_a_small_fleet_has_a_column_for_each_node() -> None:
    text = samples.fleet(20)
    assert "gpu00005: fail on 1 of 1" in text
    assert 'class="f-fail share' not in text
    assert ">F</text>" in text


def test_a_column_of_neighbors_is_the_paler_the_fewer_are_faulty() -> None:
    text = samples.fleet(512)
    assert re.search(r'class="f-fail share1"><title>gpu[^<]*: fail on 1 of 5<', text)
    assert ">gpu-lost 18</text>" in text, "a row counts its nodes"
    assert ">F</text>" not in text
