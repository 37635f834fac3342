"""Rows of `clock-skew`."""

from __future__ import annotations

import msgspec
import pytest

from dsdoctor.api import NodeReach, NodesReach
from dsdoctor.testing import judge
from dsdoctor_checks.launch import clock_skew
from tests.checks import machines

CHECK = clock_skew.clocks_agree
LIMITS = clock_skew.SkewLimits()


def nodes(*skews: float | None) -> NodesReach:
    return NodesReach(
        nodes=tuple(NodeReach(host=f"n{i}", skew_s=skew) for i, skew in enumerate(skews))
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(nodes(), "skip", id="no other node was asked"),
        pytest.param(nodes(None), "skip", id="the clock of the other node is unknown"),
        pytest.param(nodes(0.3, -1.9), "ok", id="two seconds apart"),
        pytest.param(nodes(0.3, -61.0), "warn", id="one clock is a minute behind"),
        pytest.param(nodes(3600.0), "warn", id="one clock is an hour ahead"),
    ],
)
def test_rows(fact: NodesReach, expected: str) -> None:
    assert judge(CHECK, nodes_reach=fact).status == expected


def test_only_those_that_differ_are_named() -> None:
    (finding,) = judge(CHECK, nodes_reach=nodes(0.1, 90.5, -400.0)).bad
    assert "`n1` by 90.5 s (ahead) and `n2` by 400 s (behind)" in finding.message


def test_a_clock_of_another_year_is_wrong() -> None:
    """Nothing is said of the others: theirs are compared with this one."""
    wrong = msgspec.structs.replace(machines.LINUX, clock="1970-01-01")
    assert judge(CHECK, nodes_reach=nodes(0.3), os_info=wrong).statuses == ["warn"]
    assert judge(CHECK, nodes_reach=nodes(0.3), os_info=machines.LINUX).status == "ok"
    assert judge(CHECK, os_info=machines.LINUX).status == "skip"
