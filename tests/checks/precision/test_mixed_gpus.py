from __future__ import annotations

from typing import Any

import pytest

from dsdoctor import packs
from dsdoctor.api import Gpus, RunNeeds
from dsdoctor.judge import judge as judged
from dsdoctor.paste.environment import environment_of
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
    facts = {"deep_speed_install": m.DEEPSPEED, **facts}
    assert judge(CHECK, **facts).statuses == expected


def test_a_run_that_nobody_named_is_not_called_this_run() -> None:
    facts: dict[str, Any] = {
        "gpus": m.gpus("A100", "V100"),
        "deep_speed_install": m.DEEPSPEED,
        "environment": m.NO_ENV,
    }
    (found,) = judge(CHECK, **facts).findings
    assert found.message.startswith("the 2 GPUs that a launch uses by default are ")
    (found,) = judge(CHECK, **facts, run_needs=RunNeeds(gpus=("0", "1"))).findings
    assert found.message.startswith("the 2 GPUs of this run are ")


CARDS = (
    "PyTorch version: 2.1.0\nIs debug build: False\nCUDA used to build PyTorch: 12.1\n\n"
    "GPU models and configuration:\nGPU 0: NVIDIA A40\nGPU 1: NVIDIA L40\n\n"
    "Nvidia driver version: 535.104.05\n\n"
)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        pytest.param(CARDS, False, id="no job"),
        pytest.param(
            f"{CARDS}deepspeed info ................... 0.9.5, x, y\n", True, id="DeepSpeed"
        ),
        pytest.param(f"{CARDS}$ torchrun --nproc_per_node 2 train.py\n", True, id="two ranks"),
    ],
)
def test_a_paste_that_shows_no_job(text: str, named: bool) -> None:
    registry = packs.load(builtin_only=True)
    snapshot = environment_of(text)
    assert snapshot is not None
    report = judged(snapshot, list(registry), registry)
    bad = {one.condition for one in report.findings if one.status.value in ("warn", "fail")}
    assert ("mixed-gpus" in bad) is named
