"""The picture of a machine: sockets, NUMA nodes, the ring over its GPUs."""

from __future__ import annotations

import re

from dsdoctor.report.html.machine import ring_of
from tests.html import samples


def test_numa_nodes_are_in_their_sockets() -> None:
    one_each = samples.checked()
    assert "CPU socket 1 · NUMA node 1 · CPUs 56-111" in one_each
    assert 'class="box socket"' not in one_each
    two_each = samples.checked(nodes_per_socket=2)
    names = re.findall(r"<bdi>((?:CPU socket|NUMA node) \d+)", two_each)
    assert names == [
        *("CPU socket 0", "NUMA node 0", "NUMA node 1"),
        *("CPU socket 1", "NUMA node 2", "NUMA node 3"),
    ]


def test_the_ring_takes_the_links_that_are_there() -> None:
    four = {frozenset(pair): 4 for pair in ((0, 2), (2, 1), (1, 3), (3, 0))}
    assert ring_of([0, 1, 2, 3], four) == [0, 2, 1, 3]
    assert ring_of([0, 1], {}) == [0, 1]
    assert ring_of([3], {}) == [3]
    assert ring_of(list(range(16)), {}) == list(range(16)), "too many orders to try"
    assert "a ring over 0 – 1 – 2 – 3 – 0 has 18 NVLinks on every hop" in samples.checked()


def test_a_gpu_carries_what_was_found_for_it() -> None:
    text = samples.checked()
    (two,) = re.findall(r"<b><bdi>GPU 2</bdi></b>(.*?)</div>", text, re.DOTALL)
    (four,) = re.findall(r"<b><bdi>GPU 4</bdi></b>(.*?)</div>", text, re.DOTALL)
    assert '<span class="pill warn ">gpu-busy</span>' in two
    assert "pill" not in four
    assert text.count('"wire few"') == 7, "each pair of GPU 5, which has links down"
