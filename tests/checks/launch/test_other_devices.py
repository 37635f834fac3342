"""Rows of `invalid-device-ordinal` on accelerators other than NVIDIA's."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    CudaDevice,
    DeepSpeedLive,
    Environment,
    ImportOutcome,
    Missing,
    RunNeeds,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.facts.run import ContainerStart
from dsdoctor.probes.environment import allowed
from dsdoctor.testing import Judged, judge, missing
from dsdoctor_checks.launch import invalid_device_ordinal as unit
from tests.checks import machines
from tests.checks.launch.rows import command, gpus

FINE = ImportOutcome(ok=True)
NPU = DeepSpeedLive(imported=FINE, accelerator="npu")
XPU = DeepSpeedLive(imported=FINE, accelerator="xpu")
EIGHT = "torchrun --nproc_per_node 8 t.py"
FOUR = "torchrun --nproc_per_node 4 t.py"
NPUS = {"ASCEND_RT_VISIBLE_DEVICES": "4,5,6,7"}
TILES = {"ZE_AFFINITY_MASK": "0,1,2,3", "ZE_FLAT_DEVICE_HIERARCHY": "FLAT"}


def judged(line: str, variables: dict[str, str], **facts: Any) -> Judged:
    given: dict[str, Any] = {"gpus": machines.ABSENT, "torch_build": missing(), **facts}
    return judge(
        unit.ranks_have_devices,
        launch_command=command(line),
        environment=Environment(variables=variables),
        **given,
    )


@pytest.mark.parametrize(
    ("line", "deepspeed", "variables", "status"),
    [
        pytest.param(FOUR, NPU, NPUS, "ok", id="four ranks on four NPUs"),
        pytest.param(EIGHT, NPU, NPUS, "fail", id="eight ranks on four NPUs"),
        pytest.param(EIGHT, NPU, {}, "skip", id="nothing says how many NPUs there are"),
        pytest.param(
            "deepspeed --num_gpus 8 t.py",
            NPU,
            NPUS,
            "skip",
            id="deepspeed sets the variable itself",
        ),
        pytest.param(
            f"ASCEND_RT_VISIBLE_DEVICES=0,1 {FOUR}", NPU, NPUS, "fail", id="the command sets it"
        ),
        pytest.param(
            EIGHT, NPU, {"ASCEND_RT_VISIBLE_DEVICES": "$X"}, "skip", id="no list of numbers"
        ),
        pytest.param(
            "accelerate launch --gpu_ids 0,1 --num_processes 2 t.py",
            NPU,
            {"ASCEND_RT_VISIBLE_DEVICES": "4"},
            "skip",
            id="accelerate sets the variable itself",
        ),
        pytest.param(EIGHT, XPU, TILES, "fail", id="eight ranks on four tiles"),
        pytest.param(FOUR, XPU, TILES, "ok", id="four ranks on four tiles"),
        pytest.param(
            EIGHT,
            XPU,
            {**TILES, "ZE_FLAT_DEVICE_HIERARCHY": "COMPOSITE"},
            "skip",
            id="cards, which may have two tiles each",
        ),
        pytest.param(EIGHT, missing(), NPUS, "skip", id="no sign that the job uses NPUs"),
    ],
)
def test_listed(
    line: str, deepspeed: DeepSpeedLive | Missing, variables: dict[str, str], status: str
) -> None:
    found = judged(line, variables, deep_speed_live=deepspeed)
    assert found.statuses == [status]


def test_the_variable_of_another_accelerator_says_nothing_of_gpus() -> None:
    """A machine with four GPUs, whose image sets the variable of an NPU."""
    found = judged(FOUR, {"ASCEND_RT_VISIBLE_DEVICES": "0"}, gpus=gpus(4), deep_speed_live=NPU)
    assert found.statuses == ["ok"]


def _amd(count: int, *, works: bool = True) -> dict[str, Any]:
    devices = tuple(CudaDevice(index=i, name="MI300X", major=9, minor=4) for i in range(count))
    return {
        "torch_build": TorchBuild(version="2.8.0+rocm6.4", hip="6.4", path="/x/torch"),
        "torch_live": TorchLive(imported=FINE, cuda_ok=works, devices=devices),
    }


def test_a_container_has_variables_of_its_own() -> None:
    run = RunNeeds(container=ContainerStart(program="docker run"))
    found = judged(EIGHT, NPUS, deep_speed_live=NPU, run_needs=run)
    assert found.statuses == ["skip"]


@pytest.mark.parametrize(
    ("line", "variables", "facts", "status"),
    [
        pytest.param(FOUR, {"ROCR_VISIBLE_DEVICES": "4,5,6,7"}, _amd(4), "ok", id="four on four"),
        pytest.param(
            EIGHT, {"ROCR_VISIBLE_DEVICES": "4,5,6,7"}, _amd(4), "fail", id="eight on four"
        ),
        pytest.param(
            f"HIP_VISIBLE_DEVICES=0 {FOUR}", {}, _amd(8), "skip", id="the command selects others"
        ),
        pytest.param(
            "deepspeed --num_gpus 8 t.py",
            {"HIP_VISIBLE_DEVICES": "0,1"},
            _amd(2),
            "skip",
            id="deepspeed selects others",
        ),
        pytest.param("deepspeed --num_gpus 8 t.py", {}, _amd(4), "fail", id="by deepspeed"),
        pytest.param(EIGHT, {}, _amd(0, works=False), "skip", id="torch finds none"),
    ],
)
def test_amd(line: str, variables: dict[str, str], facts: dict[str, Any], status: str) -> None:
    found = judged(line, variables, **facts)
    assert found.statuses == [status]


def test_a_snapshot_has_the_variables() -> None:
    assert allowed("ASCEND_RT_VISIBLE_DEVICES")
    assert allowed("ZE_AFFINITY_MASK")
    assert allowed("ZE_FLAT_DEVICE_HIERARCHY")
