from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import FabricManager, Gpus
from dsdoctor.model.facts.gpu import GpuFabric
from dsdoctor.testing import judge
from dsdoctor_checks.driver import fabric_manager_not_running
from tests.checks import machines as m

CHECK = fabric_manager_not_running.fabric_is_up


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=3)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=0)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=1)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=2)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=2)),
                "nvml": m.nvml(),
                "torch_live": m.live(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=1), mig_mode=True),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["ok"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=3, status=15)),
                "nvml": m.nvml(),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("H100", fabric=GpuFabric(state=None)),
                "nvml": m.nvml(),
                "torch_live": m.live(802),
                "environment": m.NO_ENV,
            },
            ["fail"],
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


AMPERE = m.gpus("A100", fabric=GpuFabric(state=0))


@pytest.mark.parametrize(
    ("gpus", "live", "manager", "expected"),
    [
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=True), ["ok"]),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=None), ["ok"]),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=0, running=False), ["ok"]),
        (AMPERE, m.live(), FabricManager(switches=6, running=False), ["ok"]),
        (AMPERE, m.NOT_ASKED, FabricManager(switches=6, running=False), ["fail"]),
        (AMPERE, m.live(802), FabricManager(switches=6, running=False), ["fail"]),
        (
            m.gpus("A100", mig_mode=True),
            m.NOT_ASKED,
            FabricManager(switches=6, running=False),
            ["ok"],
        ),
        (
            m.gpus("H100", fabric=GpuFabric(state=3)),
            m.NOT_ASKED,
            FabricManager(switches=4, running=False),
            ["ok"],
        ),
    ],
)
def test_boards_before_hopper(
    gpus: Gpus, live: Any, manager: FabricManager, expected: list[str]
) -> None:
    facts: dict[str, Any] = {
        "gpus": gpus,
        "nvml": m.nvml(),
        "torch_live": live,
        "environment": m.NO_ENV,
        "fabric_manager": manager,
    }
    found = judge(CHECK, **facts).findings
    assert m.words(found) == expected
    if expected == ["fail"]:
        assert "6 NVSwitches" in found[0].message
