"""Rows of `accelerate-refuses-gpus`: what accelerate asks in each rank."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, Nvml, RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import accelerate_refuses_gpus
from tests.checks.python.support import packages

TWO = "NVIDIA GeForce RTX 4090", "NVIDIA GeForce RTX 4090"
SET = {"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}


@pytest.mark.parametrize(
    ("line", "version", "driver", "names", "variables", "framework", "expected"),
    [
        pytest.param("deepspeed t.py", "0.28.0", "535.129.03", TWO, {}, "", "warn", id="deepspeed"),
        pytest.param("deepspeed t.py", "0.28.0", "535.129.03", TWO, {}, "hf", "fail", id="Trainer"),
        pytest.param("torchrun t.py", "1.7.0", "545.23.08", TWO, {}, "", "warn", id="torchrun"),
        pytest.param(
            "deepspeed t.py", "0.28.0", "550.90.07", TWO, {}, "", "warn",
            id="a release that does not look at the driver",
        ),
        pytest.param("deepspeed t.py", "0.30.1", "550.90.07", TWO, {}, "", "ok", id="new driver"),
        pytest.param("deepspeed t.py", "0.24.1", "535.129.03", TWO, {}, "", "ok", id="before 0.25"),
        pytest.param("deepspeed t.py", "0.28.0", "535.129.03", TWO[:1], {}, "", "ok", id="one GPU"),
        pytest.param("deepspeed t.py", "0.28.0", "535.129.03", TWO, SET, "", "ok", id="both set"),
        pytest.param(
            "deepspeed t.py", "0.28.0", "535.129.03", TWO, {"NCCL_P2P_DISABLE": "1"}, "", "warn",
            id="one of two set",
        ),
        pytest.param(
            "NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1 deepspeed t.py", "0.28.0", "535.129.03", TWO, {},
            "", "ok", id="set in the command",
        ),
        pytest.param(
            "deepspeed t.py", "0.28.0", "535.129.03", ("NVIDIA GeForce RTX 3090",) * 2, {}, "", "ok",
            id="RTX 30",
        ),
        pytest.param(
            "accelerate launch t.py", "0.28.0", "535.129.03", TWO, {}, "", "skip",
            id="accelerate sets them itself",
        ),
        pytest.param(
            "deepspeed t.py", "0.28.0", "535.129.03", TWO, {}, "native", "skip",
            id="a script without accelerate",
        ),
    ],
)  # fmt: skip
def test_rows(
    line: str,
    version: str,
    driver: str,
    names: tuple[str, ...],
    variables: dict[str, str],
    framework: str,
    expected: str,
) -> None:
    judged = judge(
        accelerate_refuses_gpus.accelerate_accepts_the_gpus,
        packages=packages(accelerate=version),
        gpus=Gpus(gpus=tuple(Gpu(index=i, name=name) for i, name in enumerate(names))),
        launch_command=parse_command(line.split()),
        run_needs=RunNeeds(framework=framework),
        environment=Environment(variables=variables),
        nvml=Nvml(driver_version=driver),
    )
    assert judged.status == expected
