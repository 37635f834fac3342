"""Choice, output and agreement with DeepSpeed."""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.gpu import Gpu, Gpus
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.launch_plan import LaunchPlan, decode, encode
from dsdoctor.recommend import files, output
from dsdoctor.recommend.memory import GIB, Setting
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.planning import OPTIMIZERS, PlanOptions, machine_from, machine_of, recommend
from dsdoctor.report.launch_plan import render

OS = OsInfo(system="Linux", release="6", machine="x86_64", hostname="n")
RAM = Resources(
    cpus_logical=16, cpus_usable=8, memory_total_bytes=64 * GIB, memory_available_bytes=50 * GIB
)


def gpu(index: int, free: int = 70) -> Gpu:
    return Gpu(
        index=index,
        uuid=f"GPU-{index}",
        cc_major=8,
        cc_minor=0,
        memory_total_bytes=80 * GIB,
        memory_free_bytes=free * GIB,
    )


def plan_for(**options: Any) -> LaunchPlan:
    return recommend(
        machine_of(gpu_gib=80, count=4, host_gib=1000),
        resolve("llama-3-8b"),
        PlanOptions(**options),
    )


def test_facts_become_the_machine_and_the_fullest_gpu_is_the_limit() -> None:
    gpus = Gpus(gpus=(gpu(0), gpu(1, 20), gpu(2)))
    machine = machine_from(gpus, RAM, RunNeeds(gpus=("2", "GPU-1")), OS)
    assert [device.index for device in machine.devices] == [
        1,
        2,
    ]  # PCI order, as the launchers number ranks
    plan = recommend(machine, resolve("gpt2"))
    assert plan.memory.options[0].gpu_limit_bytes == 20 * GIB
    assert "localhost:1,2" in plan.argv


@pytest.mark.parametrize(
    ("stage", "count", "noted"),
    [(3, 4, True), (2, 4, False), (3, 1, False)],
    ids=["ZeRO-3", "whole weights on each rank", "a single rank"],
)
def test_experts_that_ranks_use_differently_are_noted(stage: int, count: int, noted: bool) -> None:
    moe = dataclasses.replace(resolve("llama-3-8b"), experts=8, active_experts=2)
    machine = machine_of(gpu_gib=80, count=count, host_gib=1000)
    for model, wanted in ((moe, noted), (resolve("llama-3-8b"), False)):
        plan = recommend(machine, model, PlanOptions(stage=stage))
        assert ("experts" in {reason.subject for reason in plan.reasons}) is wanted


def test_what_is_not_there_is_refused() -> None:
    with pytest.raises(UsageError, match="7"):
        machine_from(Gpus(gpus=(gpu(0),)), RAM, RunNeeds(gpus=("7",)), OS)
    gone = Missing(why=Why.ABSENT, detail="no driver")
    with pytest.raises(UsageError, match="no driver"):
        machine_from(gone, RAM, RunNeeds(gpus=("0",)), OS)
    assert recommend(machine_from(gone, RAM, RunNeeds(), OS), resolve("gpt2")).gpu_ids == ()


CONFIGS = {
    f"{stage}-{offload}-{precision}-{optimizer}": output.ds_config(
        Setting(stage=stage, offload=offload, precision=precision, micro_batch=2),
        optimizer=optimizer,
        accumulation=3,
        global_batch=6,
    )
    for stage, offload in ((0, "none"), (1, "none"), (2, "optimizer"), (3, "optimizer+parameters"))
    for precision in ("bf16", "fp16", "fp32")
    for optimizer in OPTIMIZERS
}


def test_no_config_says_auto() -> None:
    assert '"auto"' not in json.dumps(CONFIGS)


@pytest.mark.train
def test_deepspeed_accepts_every_config(tmp_path: Path) -> None:
    """In a child: importing deepspeed warns and starts threads."""
    path = tmp_path / "configs.json"
    path.write_text(json.dumps(CONFIGS))
    code = (
        "import json, sys\n"
        "from deepspeed.runtime.config import DeepSpeedConfig\n"
        "for name, config in json.load(open(sys.argv[1])).items():\n"
        "    read = DeepSpeedConfig(config)\n"
        "    assert read.train_batch_size == 6, name\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_plan_survives_json_and_has_the_contract_keys() -> None:
    plan = plan_for()
    assert decode(encode(plan)) == plan
    keys = json.loads(encode(plan))
    assert {"schema", "version", "argv", "env", "ds_config", "memory", "reasons"} <= set(keys)
    assert (keys["schema"], keys["version"]) == ("dsdoctor/launch", 1)


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "accelerate"])
def test_files_are_written_and_bash_reads_them(tmp_path: Path, launcher: str) -> None:
    plan = plan_for(launcher=launcher, nodes=2, hosts=("a", "b"))
    for path in files.write(plan, tmp_path, slurm=True):
        if path.suffix in {".sh", ".sbatch"}:
            assert subprocess.run(["bash", "-n", str(path)], check=False).returncode == 0
    assert json.loads((tmp_path / "ds_config.json").read_text()) == plan.ds_config


@pytest.mark.parametrize("width", [30, 60, 80, 200])
def test_text_fits_the_terminal_but_for_what_is_copied(width: int) -> None:
    plan = plan_for()
    for line in render(plan, width).splitlines():
        assert len(line) <= max(width, 48) or line.lstrip().startswith("CUDA") or width >= 60


@pytest.mark.parametrize("objective", ["speed", "memory", "balanced"])
def test_objectives_fit(objective: str) -> None:
    plan = plan_for(objective=objective)
    assert plan.fits
    assert [row.verdict for row in plan.memory.options].count("chosen") == 1


def test_precision_follows_the_hardware() -> None:
    model = resolve("gpt2")
    for cc, wanted in (((9, 0), "bf16"), ((7, 5), "fp16"), ((6, 1), "fp32")):
        assert recommend(machine_of(gpu_gib=80, cc=cc), model).precision == wanted
    with pytest.raises(UsageError, match=r"6\.1"):
        recommend(machine_of(gpu_gib=80, cc=(6, 1)), model, PlanOptions(precision="fp16"))


@pytest.mark.parametrize(
    ("options", "cc", "stage"),
    [
        pytest.param({}, (7, 5), 1, id="fp16 in the newest release"),
        pytest.param({"objective": "memory"}, (7, 5), 1, id="whatever is favored"),
        pytest.param({"deepspeed": "0.18.3"}, (7, 5), 1, id="fp16 in the first such release"),
        pytest.param({"deepspeed": "0.18.2"}, (7, 5), 0, id="fp16 in the release before"),
        pytest.param({"stage": 0}, (7, 5), 0, id="stage 0 by request"),
        pytest.param({}, (8, 0), 0, id="bf16"),
    ],
)
def test_fp16_without_zero_is_not_advised_where_deepspeed_does_not_scale_its_loss(
    options: dict[str, Any], cc: tuple[int, int], stage: int
) -> None:
    plan = recommend(machine_of(gpu_gib=80, cc=cc), resolve("gpt2"), PlanOptions(**options))
    assert plan.stage == stage
    first = plan.memory.options[0]
    told = " ".join(reason.text for reason in plan.reasons)
    if stage == 1:
        assert (first.name, first.verdict) == ("zero-0", "not advised")
    assert ("did not apply to the loss" in told) == (stage == 1 or "stage" in options)


@pytest.mark.parametrize(
    ("options", "stage"),
    [
        pytest.param({"optimizer": "sgd", "deepspeed": "0.18.5"}, 1, id="SGD in such a release"),
        pytest.param({"optimizer": "lion", "deepspeed": "0.17.6"}, 1, id="Lion in the first"),
        pytest.param({"optimizer": "sgd", "deepspeed": "0.18.6"}, 0, id="the release that clears"),
        pytest.param({"optimizer": "sgd", "deepspeed": "0.17.5"}, 0, id="the release before"),
        pytest.param({"optimizer": "sgd"}, 0, id="the newest release"),
        pytest.param({"deepspeed": "0.18.5"}, 0, id="FusedAdam"),
        pytest.param(
            {"optimizer": "sgd", "deepspeed": "0.18.5", "stage": 0}, 0, id="stage 0 by request"
        ),
    ],
)
def test_bf16_without_zero_is_not_advised_where_deepspeed_does_not_clear_its_gradients(
    options: dict[str, Any], stage: int
) -> None:
    plan = recommend(machine_of(gpu_gib=80, cc=(8, 0)), resolve("gpt2"), PlanOptions(**options))
    assert (plan.precision, plan.stage) == ("bf16", stage)
    told = " ".join(reason.text for reason in plan.reasons)
    if stage == 1:
        assert plan.memory.options[0].verdict == "not advised"
    assert ("does not clear the bf16 gradients" in told) == (stage == 1 or "stage" in options)


def test_nothing_fits_is_said() -> None:
    plan = recommend(machine_of(gpu_gib=8, host_gib=8), resolve("llama-3-70b"))
    assert not plan.fits
    assert plan.memory.chosen is None
    assert "nothing fits" in render(plan)
