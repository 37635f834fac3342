"""Plans for a script of the Hugging Face Trainer."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor.cli.recommend import command
from dsdoctor.framework import of_script
from dsdoctor.model.launch_plan import LaunchPlan
from dsdoctor.recommend import trainer
from dsdoctor.recommend.files import files
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.planning import PlanOptions, machine_of, recommend

CHILD = Path(__file__).with_name("children") / "trainer.py"
SCRIPT = "from transformers import Trainer, TrainingArguments\n"


def plan_for(gib: float = 80, *, count: int = 1, **options: Any) -> LaunchPlan:
    machine = machine_of(gpu_gib=gib, count=count, cc=(8, 0), host_gib=400)
    return recommend(machine, resolve("llama-3.2-1b"), PlanOptions(framework="hf", **options))


def behind_script(plan: LaunchPlan) -> list[str]:
    return list(plan.argv[plan.argv.index("train.py") + 1 :])


def test_the_line_says_what_the_config_says() -> None:
    plan = plan_for(count=2, global_batch=32, micro_batch=4, checkpointing=True)
    assert behind_script(plan) == [
        "--deepspeed", "ds_config.json",
        "--per_device_train_batch_size", "4", "--gradient_accumulation_steps", "4",
        "--bf16", "true", "--gradient_checkpointing", "true",
    ]  # fmt: skip
    assert plan.ds_config["train_micro_batch_size_per_gpu"] == 4
    assert plan.ds_config["optimizer"]["params"]["lr"] == "auto"
    subjects = {reason.subject for reason in plan.reasons}
    assert "framework" in subjects
    assert "checkpointing" not in subjects  # the Trainer turns it on


def test_accelerate_passes_the_config_itself() -> None:
    words = behind_script(plan_for(launcher="accelerate", micro_batch=4))
    assert words[:2] == ["--per_device_train_batch_size", "4"]
    assert "--deepspeed" not in words


def test_written_files_name_the_config_beside_them(tmp_path: Path) -> None:
    plan = plan_for(count=2, micro_batch=4)
    made = files(plan, folder=str(tmp_path), slurm=True)
    gets = 'train.py --deepspeed "$here/ds_config.json" --per_device_train_batch_size 4 '
    assert gets in made["launch.sh"]
    assert gets in made["job.sbatch"]


def test_an_optimizer_that_deepspeed_cannot_make_is_the_trainers() -> None:
    plan = plan_for(optimizer="adamw8bit")
    assert behind_script(plan)[-2:] == ["--optim", "adamw_bnb_8bit"]
    assert "optimizer" not in plan.ds_config
    assert not [row for row in plan.reasons if row.subject == "optimizer"]
    native = recommend(machine_of(gpu_gib=80), resolve("gpt2"), PlanOptions(optimizer="adamw8bit"))
    assert [row for row in native.reasons if row.subject == "optimizer"]


@pytest.mark.train
def test_the_trainer_finds_no_difference(tmp_path: Path) -> None:
    cases = {
        "ZeRO-0": plan_for(),
        "accumulation": plan_for(global_batch=64, micro_batch=2),
        "fp16": plan_for(precision="fp16"),
        "offload": plan_for(stage=2, offload="optimizer", checkpointing=True),
        "ZeRO-3": plan_for(stage=3),
        "lion": plan_for(optimizer="lion"),
        "adafactor": plan_for(optimizer="adafactor"),
        "8-bit": plan_for(optimizer="adamw8bit"),
    }
    asked = {
        name: {"config": plan.ds_config, "arguments": [*behind_script(plan)[2:], "--use_cpu"]}
        for name, plan in cases.items()
    }
    native = recommend(machine_of(gpu_gib=80), resolve("gpt2"), PlanOptions())
    asked["native"] = {**asked["ZeRO-0"], "config": native.ds_config}
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(asked), "utf-8")
    done = subprocess.run(
        [sys.executable, str(CHILD), str(path)],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout.splitlines()[-1])
    assert any("learning_rate" in row for row in found.pop("native")[0])
    assert {name: row[0] for name, row in found.items()} == {name: [] for name in cases}
    assert {row[1] for name, row in found.items() if name != "8-bit"} == {3e-4}
    assert {name for name, row in found.items() if row[2]} == {
        name for name, plan in cases.items() if plan.checkpointing
    }


@pytest.mark.parametrize(
    ("given", "wanted"),
    [([], "hf"), (["--framework", "native"], "native")],
    ids=["the script's imports", "the option"],
)
def test_the_imports_of_the_script_decide(tmp_path: Path, given: list[str], wanted: str) -> None:
    script = tmp_path / "sft.py"
    script.write_text(SCRIPT)
    words = ["--model", "gpt2", "--gpu-memory", "80", "--script", str(script), "--no-measure"]
    done = CliRunner().invoke(command, [*words, *given, "--format", "json"])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["framework"] == wanted


def test_a_script_that_cannot_be_read_says_nothing(tmp_path: Path) -> None:
    assert of_script(str(tmp_path / "none.py")) == ""
    assert of_script(str(tmp_path)) == ""
    (tmp_path / "run.sh").write_text(SCRIPT)
    assert of_script(str(tmp_path / "run.sh")) == ""
    assert trainer.makes("adamw8bit")
    assert not trainer.makes("adamw")
