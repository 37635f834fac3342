from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import FabricManager, Gpus
from dsdoctor.model.facts.gpu import GpuFabric
from dsdoctor_checks.driver import fabric_manager_not_running
from tests.checks import machines as m

CHECK = fabric_manager_not_running.fabric_is_up.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.gpus("H100", fabric=GpuFabric(state=3)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY), []),
        ((m.gpus("H100", fabric=GpuFabric(state=0)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY), []),
        (
            (m.gpus("H100", fabric=GpuFabric(state=1)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY),
            ["fail"],
        ),
        (
            (m.gpus("H100", fabric=GpuFabric(state=2)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY),
            ["fail"],
        ),
        ((m.gpus("H100", fabric=GpuFabric(state=2)), m.nvml(), m.live(), m.NO_ENV, m.ANY), []),
        (
            (
                m.gpus("H100", fabric=GpuFabric(state=1), mig_mode=True),
                m.nvml(),
                m.NOT_ASKED,
                m.NO_ENV,
                m.ANY,
            ),
            [],
        ),
        (
            (
                m.gpus("H100", fabric=GpuFabric(state=3, status=15)),
                m.nvml(),
                m.NOT_ASKED,
                m.NO_ENV,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (m.gpus("H100", fabric=GpuFabric(state=None)), m.nvml(), m.live(802), m.NO_ENV, m.ANY),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts, m.ABSENT)) == expected


AMPERE = m.gpus("A100", fabric=GpuFabric(state=0))


@pytest.mark.parametrize(
    ("gpus", "live", "manager", "expected"),
    [
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=True), []),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=None), []),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=0, running=False), []),
        (AMPERE, m.live(), FabricManager(switches=6, running=False), []),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=False), ["fail"]),
        (AMPERE, m.live(802), FabricManager(switches=6, running=False), ["fail"]),
        (
            m.gpus("A100", mig_mode=True),
            m.NOT_ASKED,
            FabricManager(switches=6, running=False),
            [],
        ),
        (
            m.gpus("H100", fabric=GpuFabric(state=3)),
            m.NOT_ASKED,
            FabricManager(switches=4, running=False),
            [],
        ),
    ],
)
def test_boards_before_hopper(
    gpus: Gpus, live: Any, manager: FabricManager, expected: list[str]
) -> None:
    facts = (gpus, m.nvml(), live, m.NO_ENV, m.ANY, manager)
    found = list(CHECK(*facts))
    assert m.words(found) == expected
    if expected:
        assert "6 NVSwitches" in found[0].message
