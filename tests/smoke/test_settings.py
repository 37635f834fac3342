"""Real DeepSpeed on CPUs: every stage and offload trains, and takes the memory that was said."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.host import free_port
from tests.smoke.conftest import Smoke

pytestmark = [pytest.mark.train, pytest.mark.timeout(1800)]

CPU = {"device": "cpu"}


def states(report: dict[str, Any]) -> float:
    """Measured over predicted model states."""
    rows = [row for row in report["figures"]["memory"] if row["what"].startswith("model states")]
    assert len(rows) == 1
    return float(rows[0]["ratio"])


def test_default_smoke_on_two_cpus_passes_and_keeps_what_it_proved(smoke: Smoke) -> None:
    folder = smoke.folder / "proven"
    ended = smoke("--cpu", "2", "-o", str(folder))
    report = ended.report
    assert ended.status == 0, ended.out
    assert report["verdict"] == "pass"
    assert [phase["status"] for phase in report["phases"]] == ["ok"] * 11
    assert [rank["outcome"] for rank in report["ranks"]] == ["done", "done"]
    assert any("ZeRO-1" in line for line in report["proved"])
    assert any("GPUs, NCCL" in line for line in report["not_proved"])
    assert any("--full-size" in line for line in report["not_proved"])
    assert not any("settings are confirmed" in line for line in report["proved"])
    figures = report["figures"]
    assert figures["last_loss"] < figures["first_loss"] - 1
    assert figures["reference_loss"] == pytest.approx(figures["last_loss"], rel=2e-3)
    assert [row["bytes"] for row in figures["bandwidth"]] == [1 << 16, 1 << 20, 1 << 22]
    assert all(row["gb_per_s"] > 0 for row in figures["bandwidth"])
    assert 0.95 <= states(report) <= 1.05
    assert {path.name for path in folder.iterdir()} == {
        "ds_config.json", "launch.sh", "launch.json", "report.json",
    }  # fmt: skip
    assert json.loads((folder / "report.json").read_text()) == report
    kept = smoke.folder / "state" / "dsdoctor"
    snapshot = json.loads((kept / "last-known-good.json").read_text())
    assert list((kept / "known-good").glob("*.json"))  # what `check` and `run` compare with
    assert snapshot["schema"] == "dsdoctor/snapshot"
    # the launch line is one that a shell can run, with the user's script in its place
    script = "import sys; print('argv', sys.argv[1:])"
    (folder / "train.py").write_text(script)
    run = subprocess.run(
        ["bash", str(folder / "launch.sh")], capture_output=True, text=True, env=smoke.env,
        cwd=folder, timeout=500, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert run.stdout.count("--deepspeed_config") >= 2


@pytest.mark.parametrize(
    ("stage", "precision", "zero", "launcher"),
    [
        pytest.param(0, "bf16", {}, "torchrun", id="no ZeRO"),
        pytest.param(2, "bf16", {}, "torchrun", id="ZeRO-2"),
        pytest.param(3, "fp32", {}, "deepspeed", id="ZeRO-3 in fp32"),
        pytest.param(
            2,
            "bf16",
            {"offload_optimizer": CPU},
            "deepspeed",
            id="ZeRO-2 with an offloaded optimizer",
        ),
        pytest.param(
            3,
            "bf16",
            {"offload_optimizer": CPU, "offload_param": CPU},
            "torchrun",
            id="ZeRO-3 with everything offloaded",
        ),
    ],
)
def test_settings_train_and_take_the_predicted_memory(
    smoke: Smoke, stage: int, precision: str, zero: dict[str, Any], launcher: str
) -> None:
    ended = smoke(
        "--cpu", "2", "--steps", "3", "--launcher", launcher,
        "--config", smoke.config(stage=stage, precision=precision, zero=zero),
    )  # fmt: skip
    report = ended.report
    assert ended.status == 0, ended.out
    assert report["verdict"] == "pass"
    assert Path(report["launch"]["argv"][0]).name == launcher
    assert any(f"ZeRO-{stage}" in line and precision in line for line in report["proved"])
    assert any("equal those of a single process" in line for line in report["proved"])
    assert any("checkpoint" in line for line in report["proved"])
    assert 0.95 <= states(report) <= 1.05
    assert all(rank["model_state_bytes"] for rank in report["ranks"])


def test_guide_c1_e3_four_ranks_with_torchrun_and_a_saved_plan_full_size(smoke: Smoke) -> None:
    """A plan of `recommend` is read back, run as it is and measured against its prediction."""
    where = smoke.folder / "plan"
    made = subprocess.run(
        [
            sys.executable, "-m", "dsdoctor", "recommend", "--model", "5M", "--layers", "2",
            "--hidden", "128", "--heads", "4", "--cpu", "4", "--seq-len", "32", "--micro-batch",
            "1", "--launcher", "torchrun", "--master-port", str(free_port()),
            "-o", str(where),
        ],
        capture_output=True, text=True, env=smoke.env, timeout=500, check=False,
    )  # fmt: skip
    assert (where / "launch.json").exists(), made.stderr
    ended = smoke("--plan", str(where / "launch.json"), "--full-size", "--steps", "3")
    assert ended.status == 0, ended.out
    report = ended.report
    assert len(report["ranks"]) == 4
    assert Path(report["launch"]["argv"][0]).name == "torchrun"
    assert any("fits at full size" in line for line in report["proved"])
    assert any("checkpoints" in line for line in report["not_proved"])
    assert [row["what"] for row in report["figures"]["memory"]] == [
        "model states of a rank", "peak memory of the host",
    ]  # fmt: skip


def test_a_config_without_gradient_clipping_is_compared_with_deepspeeds_default(
    smoke: Smoke,
) -> None:
    """DeepSpeed 0.19.8 clips at 1.0 where a config is silent."""
    config = Path(smoke.config(stage=0))
    text = json.loads(config.read_text())
    del text["gradient_clipping"]
    config.write_text(json.dumps(text))
    ended = smoke("--cpu", "1", "--config", str(config))
    assert ended.status == 0, ended.out
    assert any("equal those of a single process" in line for line in ended.report["proved"])
