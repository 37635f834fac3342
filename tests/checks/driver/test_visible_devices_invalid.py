from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.driver import visible_devices_invalid
from tests.checks import machines as m

CHECK = visible_devices_invalid.names_exist


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"gpus": m.gpus("A100"), "environment": m.NO_ENV}, ["ok"]),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,1")},
            ["ok"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="1, 0")},
            ["ok"],
        ),
        ({"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="")}, ["ok"]),
        ({"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="-1")}, ["ok"]),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,-1")},
            ["ok"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="GPU-1a1")},
            ["ok"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,2")},
            ["fail"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="GPU-9")},
            ["fail"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="0,0")},
            ["fail"],
        ),
        (
            {"gpus": m.gpus("A100", "A100"), "environment": m.env(CUDA_VISIBLE_DEVICES="cuda:0")},
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("A100", "A100"),
                "run_needs": RunNeeds(gpus=("1",)),
                "environment": m.env(CUDA_VISIBLE_DEVICES="0"),
            },
            ["fail"],
        ),
        (
            {
                "gpus": m.gpus("A100", "A100"),
                "run_needs": RunNeeds(gpus=("1",)),
                "environment": m.env(CUDA_VISIBLE_DEVICES="1"),
            },
            ["ok"],
        ),
        (
            {"gpus": m.gpus("A100"), "run_needs": RunNeeds(gpus=("7",)), "environment": m.NO_ENV},
            ["fail"],
        ),
        ({"gpus": Gpus(), "run_needs": RunNeeds(gpus=("7",)), "environment": m.NO_ENV}, ["ok"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected
