"""Rows A4, B4, C2, C3, A3 and B3 of the guides that dsdoctor grew out of."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path

import pytest

import dsdoctor_checks.config
from dsdoctor.api import (
    Check,
    DeepSpeedInstall,
    DsConfig,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Hostfile,
    LaunchCommand,
    MasterPort,
    Missing,
    Package,
    Packages,
    RunNeeds,
    Status,
    Why,
)
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.config import parse_config
from dsdoctor.testing import judge, snapshot
from dsdoctor_checks.launch import (
    invalid_device_ordinal,
    launched_without_deepspeed,
    launcher_visible_devices_conflict,
    port_in_use,
)

GUIDES = Path(__file__).parent / "guides"
ABSENT = Missing(why=Why.NOT_ASKED, detail="not asked")
HF = Packages(
    packages={name: Package(name=name, version="1") for name in ("transformers", "accelerate")}
)


def gpus(count: int) -> Gpus:
    return Gpus(gpus=tuple(Gpu(index=number) for number in range(count)))


def guide(name: str) -> DsConfig:
    return parse_config((GUIDES / name).read_text(), name)


def family(config: DsConfig, packages: Packages, command: str = "") -> dict[str, list[Finding]]:
    """Findings of the whole config family that are worth a reader's time."""
    facts = snapshot(
        ds_config=config,
        deep_speed_install=DeepSpeedInstall(version="0.19.8"),
        packages=packages,
        launch_command=parse_command(command.split()) if command else ABSENT,
    )
    found: dict[str, list[Finding]] = {}
    for module in pkgutil.iter_modules(dsdoctor_checks.config.__path__):
        if module.name.startswith("_"):
            continue
        unit = importlib.import_module(f"dsdoctor_checks.config.{module.name}")
        for check in vars(unit).values():
            if not isinstance(check, Check):
                continue
            for finding in judge(check, facts).bad:
                found.setdefault(check.condition.name, []).append(finding)
    return found


def test_a4_offload_param_below_stage_3_and_auto_everywhere() -> None:
    config = guide("zero2_offload.json")
    with_trainer = family(config, HF)
    assert set(with_trainer) == {"ds-config-ignored-setting"}
    (ignored,) = with_trainer["ds-config-ignored-setting"]
    assert "`zero_optimization.offload_param` (line 10)" in ignored.message
    alone = family(config, Packages())
    assert set(alone) == {"ds-config-ignored-setting", "ds-config-auto-values"}
    (auto,) = alone["ds-config-auto-values"]
    assert auto.status is Status.FAIL
    assert auto.evidence["keys"]["zero_optimization.reduce_bucket_size"] == 14


def test_b4_config_with_remarks_and_line_numbers() -> None:
    config = guide("ds_config_zero2_gpt2xl.json")
    assert config.error is None
    assert config.lines["zero_optimization.stage"] == 9
    assert family(config, Packages(), "deepspeed --num_gpus=4 train.py") == {}


def test_e4_remote_config_is_sound_with_the_trainer() -> None:
    assert family(guide("ds_config_remote.json"), HF) == {}
    assert set(family(guide("ds_config_remote.json"), Packages())) == {"ds-config-auto-values"}


def test_d1_small_config_lacks_a_batch_size() -> None:
    found = family(guide("ds_config_zero2_small.json"), Packages())
    assert set(found) == {"ds-config-batch-mismatch"}


def command(text: str) -> LaunchCommand:
    return parse_command(text.split())


def test_c2_plain_python_where_a_launcher_is_needed() -> None:
    check = launched_without_deepspeed.a_launcher_starts_the_ranks
    run = RunNeeds(gpus=("0", "1", "2", "3"))
    (found,) = judge(
        check, launch_command=command("python train.py"), run_needs=run, environment=Environment()
    ).findings
    assert found.status is Status.FAIL
    assert "deepspeed --num_gpus 4 train.py" in found.hint
    for good in ("deepspeed train.py", "accelerate launch train.py"):
        assert (
            judge(
                check, launch_command=command(good), run_needs=run, environment=Environment()
            ).status
            == "ok"
        )


def test_c3_second_job_on_the_machine() -> None:
    line = command("CUDA_VISIBLE_DEVICES=4,5,6,7 accelerate launch --num_processes 4 train.py")
    assert line.env == {"CUDA_VISIBLE_DEVICES": "4,5,6,7"}
    devices = invalid_device_ordinal.ranks_have_devices
    assert [
        f.status
        for f in judge(
            devices, launch_command=line, gpus=gpus(8), environment=Environment()
        ).findings
    ] == [Status.OK]
    taken = MasterPort(port=29500, taken=True, holder="python (pid 7)")
    (found,) = judge(port_in_use.port_is_free, master_port=taken, launch_command=line).findings
    assert found.status is Status.FAIL
    assert "--main_process_port 29501" in found.hint


@pytest.mark.parametrize(
    ("value", "count", "status"),
    [
        pytest.param("0", 1, "ok", id="one rank on the one visible GPU"),
        pytest.param("0", 2, "fail", id="two ranks on the one visible GPU"),
    ],
)
def test_a3_visible_devices_must_be_enough(value: str, count: int, status: str) -> None:
    check = invalid_device_ordinal.ranks_have_devices
    line = command(f"torchrun --nproc_per_node {count} train.py")
    environment = Environment(variables={"CUDA_VISIBLE_DEVICES": value})
    assert [
        f.status.value
        for f in judge(check, launch_command=line, gpus=gpus(4), environment=environment).findings
    ] == [status]


@pytest.mark.parametrize(
    ("line", "status"),
    [
        pytest.param("deepspeed --num_gpus=4 train.py", ["ok"], id="the option alone"),
        pytest.param(
            "CUDA_VISIBLE_DEVICES=0,1 deepspeed --num_gpus=2 train.py",
            ["ok"],
            id="the first two GPUs, by variable and by option",
        ),
        pytest.param(
            "CUDA_VISIBLE_DEVICES=2,3 deepspeed --num_gpus=2 train.py",
            ["warn"],
            id="the option replaces GPUs 2 and 3 by the first two",
        ),
        pytest.param(
            "CUDA_VISIBLE_DEVICES=2,3 deepspeed train.py", ["ok"], id="the variable alone"
        ),
        pytest.param(
            "CUDA_VISIBLE_DEVICES=GPU-1a2b deepspeed train.py",
            ["fail"],
            id="a UUID, which the deepspeed launcher cannot read",
        ),
        pytest.param(
            "CUDA_VISIBLE_DEVICES=GPU-1a2b torchrun train.py",
            ["ok"],
            id="a UUID, which torchrun passes on",
        ),
    ],
)
def test_b3_launcher_overrides_the_variable(line: str, status: list[str]) -> None:
    check = launcher_visible_devices_conflict.launcher_sees_the_same_devices
    nowhere = Hostfile(path="/job/hostfile", asked=False, exists=False)
    found = judge(
        check, launch_command=command(line), environment=Environment(), hostfile=nowhere
    ).findings
    assert [finding.status.value for finding in found] == status
