from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.precision import mixed_gpus
from tests.checks import machines as m

CHECK = mixed_gpus.gpus_are_alike


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param(
            {"gpus": m.gpus("A100", "A100"), "environment": m.NO_ENV}, ["ok"], id="two A100"
        ),
        pytest.param(
            {"gpus": m.gpus("A100", "V100"), "environment": m.NO_ENV},
            ["warn"],
            id="an A100 and a V100",
        ),
        pytest.param(
            {
                "gpus": m.gpus("A100", "V100"),
                "run_needs": RunNeeds(gpus=("0",)),
                "environment": m.NO_ENV,
            },
            ["skip"],
            id="an A100 and a V100 of which the run uses one",
        ),
        pytest.param(
            {
                "gpus": m.gpus("V100", "A100", "A100"),
                "environment": m.env(CUDA_VISIBLE_DEVICES="1,2", CUDA_DEVICE_ORDER="PCI_BUS_ID"),
            },
            ["ok"],
            id="two A100 are visible beside a V100",
        ),
        pytest.param({"gpus": m.gpus("A100"), "environment": m.NO_ENV}, ["skip"], id="one GPU"),
        pytest.param(
            {
                "gpus": Gpus(gpus=(m.gpu("A100"), m.gpu("A100", 1, memory_total_bytes=40 << 30))),
                "environment": m.NO_ENV,
            },
            ["warn"],
            id="A100 with 80 and with 40 GB",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
