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
        (Gpu(index=0, pcie=PcieLink(width=16, max_width=16)), "ok"),
        (Gpu(index=0, pcie=PcieLink(width=None, max_width=16)), "skip"),
        (Gpu(index=0, pcie=PcieLink(width=0, max_width=0)), "ok"),
        (Gpu(index=0, pcie=PcieLink(width=8, max_width=16)), "warn"),
        (Gpu(index=0, pcie=PcieLink(width=4, max_width=16)), "fail"),
        (Gpu(index=0, brand="GeForce", pcie=PcieLink(width=8, max_width=16)), "ok"),
        (Gpu(index=0, brand="GeForce", pcie=PcieLink(width=1, max_width=16)), "warn"),
        (Gpu(index=0, pcie=PcieLink(generation=1, max_generation=4, width=16, max_width=16)), "ok"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(pcie_link_degraded.all_lanes_are_up, gpus=Gpus(gpus=(fact,))).status == expected


SLOW = PcieLink(generation=3, max_generation=4, width=16, max_width=16)
OLD_SLOT = PcieLink(generation=3, max_generation=3, gpu_max_generation=4, width=16, max_width=16)


@pytest.mark.parametrize(
    ("link", "state", "reasons", "busy", "expected"),
    [
        (SLOW, 0, 0, 95, "warn"),
        (SLOW, 0, 0x4, 95, "warn"),
        (SLOW, 0, 0x1, 95, "ok"),  # idle
        (SLOW, 8, 0, 95, "ok"),
        (SLOW, 0, 0, 3, "ok"),
        (SLOW, None, None, None, "ok"),
        (OLD_SLOT, 0, 0, 95, "ok"),
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
