"""Rows of `accelerate-refuses-gpus`: what accelerate asks in each rank."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.api import Environment, Gpu, Gpus, Nvml, RunNeeds
from dsdoctor.host import LocalHost
from dsdoctor.job.accelerate_use import without_accelerate
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
        pytest.param(
            "deepspeed t.py", "0.29.0", "550.90.07", TWO, {}, "", "ok",
            id="the first release that looks at the driver",
        ),
        pytest.param("python t.py", "0.30.1", "535.154.05", TWO, {}, "hf", "fail", id="one process"),
        pytest.param(
            "python t.py", "0.29.0", "535.154.05", TWO, {}, "accelerate", "fail", id="Accelerator",
        ),
        pytest.param(
            "env CUDA_VISIBLE_DEVICES=0 python t.py", "0.30.1", "535.154.05", TWO, {}, "hf", "fail",
            id="nvidia-smi counts hidden GPUs",
        ),
        pytest.param(
            "python t.py", "0.28.0", "535.154.05", TWO, {}, "hf", "skip",
            id="a release that asks in ranks only",
        ),
        pytest.param(
            "python t.py", "0.30.1", "535.154.05", TWO, {}, "", "skip",
            id="one process of a script that may not use accelerate",
        ),
        pytest.param("python t.py", "1.7.0", "550.90.07", TWO, {}, "hf", "ok", id="its new driver"),
        pytest.param(
            "python t.py", "0.30.1", "535.154.05", TWO[:1], {}, "hf", "ok", id="its one GPU",
        ),
        pytest.param("python t.py", "0.30.1", "535.154.05", TWO, SET, "hf", "ok", id="set for it"),
        pytest.param(
            "env CUDA_VISIBLE_DEVICES= python t.py", "0.30.1", "535.154.05", TWO, {}, "hf", "skip",
            id="on the CPU",
        ),
        pytest.param(
            "python t.py --use_cpu", "0.30.1", "535.154.05", TWO, {}, "hf", "skip", id="--use_cpu",
        ),
        pytest.param(
            "python t.py", "0.30.1", "535.154.05", TWO, {"CUDA_VISIBLE_DEVICES": ""}, "hf", "skip",
            id="no GPU in the environment",
        ),
        pytest.param(
            "accelerate launch --num_processes 1 t.py", "0.30.1", "535.154.05", TWO, {}, "hf",
            "fail", id="accelerate starts one process as it is",
        ),
        pytest.param(
            "accelerate launch --num_processes 1 --use_deepspeed t.py", "0.30.1", "535.154.05", TWO,
            {}, "hf", "skip", id="accelerate starts one rank of DeepSpeed",
        ),
        pytest.param(
            "accelerate launch --num_processes 2 t.py", "0.30.1", "535.154.05", TWO, {}, "hf",
            "skip", id="accelerate starts two ranks",
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


def test_a_script_without_accelerate_is_not_concerned() -> None:
    judged = judge(
        accelerate_refuses_gpus.accelerate_accepts_the_gpus,
        packages=packages(accelerate="0.30.1"),
        gpus=Gpus(gpus=tuple(Gpu(index=i, name=name) for i, name in enumerate(TWO))),
        launch_command=parse_command(["torchrun", "t.py"]),
        run_needs=RunNeeds(without_accelerate=True),
        nvml=Nvml(driver_version="535.154.05"),
    )
    assert judged.status == "skip"


def test_advice_for_a_single_process_does_not_name_a_launcher() -> None:
    judged = judge(
        accelerate_refuses_gpus.accelerate_accepts_the_gpus,
        packages=packages(accelerate="0.30.1"),
        gpus=Gpus(gpus=tuple(Gpu(index=i, name=name) for i, name in enumerate(TWO))),
        launch_command=parse_command(["python", "t.py"]),
        run_needs=RunNeeds(framework="hf"),
        nvml=Nvml(driver_version="535.154.05"),
        environment=Environment(),
    )
    (found,) = judged.findings
    assert "export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1" in found.hint
    assert "accelerate launch" not in found.hint


@pytest.mark.parametrize(
    ("text", "module", "line", "expected"),
    [
        pytest.param("import os\nimport torch", "", "torchrun t.py", True, id="torch"),
        pytest.param("import net", "import torch", "torchrun t.py", True, id="its own module"),
        pytest.param("import net", "import accelerate", "torchrun t.py", False, id="through it"),
        pytest.param("import torch, trl", "", "torchrun t.py", False, id="a trainer"),
        pytest.param("if a:\n import accelerate", "", "torchrun t.py", False, id="perhaps"),
        pytest.param("import importlib", "", "torchrun t.py", False, id="by name"),
        pytest.param("import torch", "", "torchrun u.py", False, id="a script that is not there"),
        pytest.param("import torch", "", "docker run a torchrun t.py", False, id="in a container"),
    ],
)
def test_what_a_script_imports(
    text: str, module: str, line: str, expected: bool, tmp_path: Path
) -> None:
    (tmp_path / "t.py").write_text(text)
    (tmp_path / "net.py").write_text(module)
    command = parse_command(line.split())
    assert without_accelerate(command, LocalHost(), str(tmp_path)) is expected
