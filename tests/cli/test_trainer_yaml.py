"""`--config` with a trainer's YAML: the DeepSpeed config in it, or the one that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dsdoctor.cli.main import group
from dsdoctor.errors import UsageError
from dsdoctor.job.request import run_needs

BAD = '{"zero_optimization": {"stage": 7}}'
AXOLOTL = """\
base_model: x
micro_batch_size: 2
bf16: auto
fp16:
deepspeed:
  zero_optimization: {stage: 7}
  bf16: {enabled: true}
  train_batch_size: auto
"""
ACCELERATE = "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n"
PASTE = "$ pip list\nPackage Version\n------- -------\ntorch   2.4.0\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ds.json").write_text(BAD, encoding="utf-8")
    return tmp_path


def failures(config: str) -> list[dict[str, Any]]:
    words = ["check", "--from-report", "-", "--config", config, "--format", "json"]
    result = CliRunner().invoke(group, words, input=PASTE, standalone_mode=False)
    if result.exception is not None:
        raise result.exception
    found = json.loads(result.output)["findings"]
    return [one for one in found if one["status"] in ("fail", "warn")]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(AXOLOTL, id="Axolotl"),
        pytest.param("model_name_or_path: x\nstage: sft\ndeepspeed: ds.json\n", id="LLaMA-Factory"),
        pytest.param(
            'model: x\ntrain_type: full\ndeepspeed: {"zero_optimization": {"stage": 7}}\n',
            id="ms-swift",
        ),
        pytest.param(ACCELERATE, id="Accelerate"),
    ],
)
def test_the_config_is_judged_and_the_trainers_own_keys_are_not(folder: Path, text: str) -> None:
    (folder / "run.yaml").write_text(text, encoding="utf-8")
    found = failures("run.yaml")
    assert [one["condition"] for one in found] == ["ds-config-wrong-type"]
    assert "`zero_optimization.stage`" in found[0]["message"]


def test_the_report_names_the_file_that_names_the_config(folder: Path) -> None:
    (folder / "run.yml").write_text("deepspeed: ds.json\n", encoding="utf-8")
    needs = run_needs(config="run.yml")
    assert (needs.config_path, needs.config_named_by) == ("ds.json", "`run.yml`")
    assert needs.framework == "hf"


def test_a_config_that_is_named_and_is_not_there_fails(folder: Path) -> None:
    (folder / "run.yml").write_text("deepspeed: gone.json\n", encoding="utf-8")
    assert [one["condition"] for one in failures("run.yml")] == ["ds-config-unreadable"]


@pytest.mark.parametrize("text", ["base_model: x\n", "deepspeed: zero3\n", "deepspeed:\n"])
def test_a_yaml_without_a_config_is_no_config(folder: Path, text: str) -> None:
    (folder / "run.yml").write_text(text, encoding="utf-8")
    with pytest.raises(UsageError, match="neither contains a DeepSpeed config nor refers to one"):
        run_needs(config="run.yml")


def test_a_yaml_is_not_rewritten(folder: Path) -> None:
    (folder / "run.yaml").write_text(AXOLOTL, encoding="utf-8")
    CliRunner().invoke(group, ["fix", "repair-ds-config", "--config", "run.yaml", "--yes"])
    assert sorted(one.name for one in folder.iterdir() if one.suffix == ".yaml") == ["run.yaml"]
