"""Options of `check` that say what the job brings: used rightly, and wrongly."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.command import clean_environment, dsdoctor


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("--profile", "gpt2-xl"), "did you mean `gpt2-xl-4gpu`"),
        (("--profile", "wrong.toml"), "line 2: unknown key `cout`; did you mean `count`"),
        (("--plan", "nowhere.json"), "`--plan nowhere.json` cannot be read"),
        (("--plan", "wrong.toml"), "is not a launch plan"),
        (("--plan", "other.json"), "is not a launch plan"),
        (("--plan", "other.json", "--model", "7B"), "already sets the model"),
        (("--model", "enormous"), "is not a preset, a size or a file"),
        (
            ("--model", "deepseek-ai/DeepSeek-V9"),
            "run `hf download deepseek-ai/DeepSeek-V9 config.json`",
        ),
        (("--model", "models/config.json"), "is not a preset, a size or a file"),
        (("--model", "0B"), "is not a model size; expected more than 0"),
        (("--seq-len", "128"), "requires `--model`"),
        (("--seq-len", "0", "--model", "7B"), "--seq-len"),
        (("--finetune", "lora"), "`--finetune` requires `--model`"),
        (("--finetune", "qlora", "--model", "7B"), "--finetune"),
        (("--model", "7B", "--lora-rank", "8"), "requires `--finetune lora`"),
        (("--checkpoint", "nowhere"), "`--checkpoint nowhere` does not exist"),
        (("--checkpoint", "wrong.toml"), "is a file"),
        (("--path", " "), "`--path` is empty"),
        (("--writable", ""), "`--writable` is empty"),
        (("--from", "x.json", "--path", "/data"), "uses facts that were read elsewhere"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_misuse_is_one_line_and_status_2(tmp_path: Path, argv: tuple[str, ...], words: str) -> None:
    (tmp_path / "wrong.toml").write_text("[gpu]\ncout = 2\n")
    (tmp_path / "other.json").write_text("{}")
    done = dsdoctor("check", "--quick", *argv, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 2, done.out
    assert done.out == ""
    assert words in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "Traceback" not in done.err


def test_paths_and_output_of_a_real_run(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "part-0").write_text("x")
    (tmp_path / "empty").mkdir()
    argv = ("check", "--quick", "--select", "storage", "--format", "json")
    asked = ("--path", "data", "--path", "empty", "--path", "gone", "--writable", "out")
    done = dsdoctor(*argv, *asked, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 1
    told = [f["message"] for f in done.report["findings"] if f["condition"] == "path-missing"]
    assert any("`gone`" in message for message in told)
    assert any("`empty` (`--path`) is an empty" in message for message in told)
    assert not any("`data`" in message for message in told)
    assert done.of("path-not-writable") == "ok"
    assert not (tmp_path / "out").exists(), "nothing is made"


def test_a_plan_goes_from_recommend_to_check(tmp_path: Path) -> None:
    env = clean_environment(tmp_path)
    wanted = ("--model", "7B", "--gpu-memory", "80", "--gpu-count", "4", "--host-memory", "256")
    made = dsdoctor("recommend", *wanted, "--format", "json", env=env, cwd=tmp_path)
    assert made.status == 0, made.err
    (tmp_path / "launch.json").write_text(made.out)
    plan = json.loads(made.out)
    argv = ("check", "--quick", "--select", "memory", "--format", "json", "--plan", "launch.json")
    done = dsdoctor(*argv, env=env, cwd=tmp_path)
    (found,) = [f for f in done.report["findings"] if f["condition"] == "plan-exceeds-host-memory"]
    assert found["evidence"]["source"] == "plan"
    chosen = {option["name"]: option for option in plan["memory"]["options"]}
    host = chosen[plan["memory"]["chosen"]]["host_bytes"]
    assert found["evidence"]["needed_gib"] == round(host / 2**30, 1)


def test_a_model_that_this_machine_cannot_hold(tmp_path: Path) -> None:
    config = {"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}
    (tmp_path / "ds.json").write_text(json.dumps(config))
    argv = ("check", "--quick", "--select", "memory", "--format", "json")
    asked = ("--config", "ds.json", "--model", "900B")
    done = dsdoctor(*argv, *asked, env=clean_environment(tmp_path), cwd=tmp_path)
    assert done.status == 1
    assert done.of("plan-exceeds-host-memory") == "fail"
    small = dsdoctor(*argv, "--model", "1M", env=clean_environment(tmp_path), cwd=tmp_path)
    assert small.of("plan-exceeds-host-memory") == "ok"


def test_a_profile_in_a_real_run(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[host]\ncpu_cores = 1\ndisk_gib = 0\n")
    argv = ("check", "--quick", "--select", "requirements-unmet", "--format", "json")
    env = clean_environment(tmp_path)
    good = dsdoctor(*argv, "--profile", "mine.toml", env=env, cwd=tmp_path)
    assert good.of("requirements-unmet") == "ok"
    (tmp_path / "mine.toml").write_text("[host]\ncpu_cores = 100000\n")
    bad = dsdoctor(*argv, "--profile", "mine.toml", env=env, cwd=tmp_path)
    assert bad.status == 1
    assert bad.of("requirements-unmet") == "fail"


@pytest.mark.parametrize(("inside", "told"), [({}, True), ({"SLURMD_NODENAME": "n1"}, False)])
def test_srun_from_a_login_node_is_said_to_run_elsewhere(
    tmp_path: Path, inside: dict[str, str], told: bool
) -> None:
    env = {**clean_environment(tmp_path), **inside}
    done = dsdoctor("check", "--quick", "--json", "--", "srun", "true", env=env, cwd=tmp_path)
    notes = json.loads(done.out)["notes"]
    assert any("run `srun -N1 dsdoctor check`" in note for note in notes) == told
