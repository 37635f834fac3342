"""Rows of `clock-skew`."""

from __future__ import annotations

import pytest

from dsdoctor.api import NodeReach, NodesReach
from dsdoctor_checks.launch import clock_skew
from tests.checks.gpu.support import bad, worst

CHECK = clock_skew.clocks_agree
LIMITS = clock_skew.SkewLimits()


def nodes(*skews: float | None) -> NodesReach:
    return NodesReach(
        nodes=tuple(NodeReach(host=f"n{i}", skew_s=skew) for i, skew in enumerate(skews))
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (nodes(), "ok"),
        (nodes(None), "ok"),
        (nodes(0.3, -1.9), "ok"),
        (nodes(0.3, -61.0), "warn"),
        (nodes(3600.0), "warn"),
    ],
)
def test_rows(fact: NodesReach, expected: str) -> None:
    assert worst(CHECK, fact, LIMITS) == expected


def test_only_those_that_differ_are_named() -> None:
    (finding,) = bad(CHECK, nodes(0.1, 90.5, -400.0), LIMITS)
    assert "`n1` by 90.5 s (ahead) and `n2` by 400 s (behind)" in finding.message
