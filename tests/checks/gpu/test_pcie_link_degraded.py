"""Rows of `pcie-link-degraded`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.model.facts.gpu import GpuHealth, PcieLink
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import pcie_link_degraded


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, pcie=PcieLink(width=16, max_width=16)), "ok", id="all 16 lanes are up"
        ),
        pytest.param(
            Gpu(index=0, pcie=PcieLink(width=None, max_width=16)),
            "skip",
            id="the width of the link is unknown",
        ),
        pytest.param(
            Gpu(index=0, pcie=PcieLink(width=0, max_width=0)),
            "ok",
            id="a GPU that is not on a PCIe link",
        ),
        pytest.param(
            Gpu(index=0, pcie=PcieLink(width=8, max_width=16)),
            "warn",
            id="half of the lanes of a data center GPU are up",
        ),
        pytest.param(
            Gpu(index=0, pcie=PcieLink(width=4, max_width=16)),
            "fail",
            id="a quarter of the lanes of a data center GPU is up",
        ),
        pytest.param(
            Gpu(index=0, brand="GeForce", pcie=PcieLink(width=8, max_width=16)),
            "ok",
            id="a GeForce with 8 lanes, as mainboards with two slots wire it",
        ),
        pytest.param(
            Gpu(index=0, brand="GeForce", pcie=PcieLink(width=1, max_width=16)),
            "warn",
            id="a GeForce with one lane, as on a riser for mining",
        ),
        pytest.param(
            Gpu(index=0, pcie=PcieLink(generation=1, max_generation=4, width=16, max_width=16)),
            "ok",
            id="an idle link at the lowest generation saves power",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(pcie_link_degraded.all_lanes_are_up, gpus=Gpus(gpus=(fact,))).status == expected


SLOW = PcieLink(generation=3, max_generation=4, width=16, max_width=16)
OLD_SLOT = PcieLink(generation=3, max_generation=3, gpu_max_generation=4, width=16, max_width=16)


@pytest.mark.parametrize(
    ("link", "state", "reasons", "busy", "expected"),
    [
        pytest.param(SLOW, 0, 0, 95, "warn", id="a busy GPU at full clocks on a slow link"),
        pytest.param(SLOW, 0, 0x4, 95, "warn", id="a busy GPU at its power cap on a slow link"),
        pytest.param(SLOW, 0, 0x1, 95, "ok", id="the driver calls the GPU idle"),  # idle
        pytest.param(SLOW, 1, 0x4, 100, "warn", id="a GPU computes in P1 on a slow link"),
        pytest.param(SLOW, 2, 0, 92, "warn", id="a GeForce computes in P2 on a slow link"),
        pytest.param(SLOW, 3, 0, 95, "ok", id="a state between power saving and full speed"),
        pytest.param(SLOW, 5, 0, 95, "ok", id="a video is decoded"),
        pytest.param(SLOW, 8, 0, 95, "ok", id="the GPU is in a power-saving state"),
        pytest.param(SLOW, 0, 0, 3, "ok", id="the GPU is hardly used"),
        pytest.param(SLOW, None, None, None, "ok", id="nothing is known of the load"),
        pytest.param(
            OLD_SLOT, 0, 0, 95, "ok", id="the slot is older than the GPU and does all it can"
        ),
    ],
)
def test_generation_counts_under_load_alone(
    link: PcieLink, state: int | None, reasons: int | None, busy: int | None, expected: str
) -> None:
    fact = Gpu(
        index=0,
        pcie=link,
        performance_state=state,
        utilization_gpu_percent=busy,
        health=GpuHealth(event_reasons=reasons),
    )
    check = pcie_link_degraded.all_lanes_are_up
    assert judge(check, gpus=Gpus(gpus=(fact,))).status == expected
