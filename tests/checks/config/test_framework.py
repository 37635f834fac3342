"""What the framework decides: "auto", batch sizes, the optimizer, strict JSON."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from dsdoctor.framework import FRAMEWORKS, framework_of
from dsdoctor.host import LocalHost
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.config import (
    ds_config_auto_values,
    ds_config_batch_mismatch,
    ds_config_unknown_optimizer,
    ds_config_unreadable,
)
from tests.checks.config.rows import ABSENT, BARE, HF, NOW, config

SCRIPTS = [
    ("from transformers import Trainer", "hf"),
    ("from transformers import AutoModel, TrainingArguments", "hf"),
    ("from trl import SFTTrainer", "hf"),
    ("import transformers\nt = transformers.Trainer()", "hf"),
    ("from accelerate import Accelerator\nfrom transformers import Trainer", "hf"),
    ("from accelerate import Accelerator\nimport transformers", "accelerate"),
    ("import accelerate\na = accelerate.Accelerator()", "accelerate"),
    ("import pytorch_lightning as pl", "lightning"),
    ("from lightning.pytorch import Trainer", "lightning"),
    ("import deepspeed\ne = deepspeed.initialize()", "native"),
    ("from deepspeed import initialize", "native"),
    ("import deepspeed\nfrom deepspeed import comm", ""),
    ("from transformers import AutoModel", ""),
    ("from .lightning import Model", ""),
    ("from transformers import Trainer\nimport deepspeed\ndeepspeed.initialize()", ""),
    ("print 'two'", ""),
    ("", ""),
]


@pytest.mark.parametrize(("text", "framework"), SCRIPTS, ids=[row[0] or "-" for row in SCRIPTS])
def test_the_framework_is_read_from_imports(text: str, framework: str) -> None:
    assert framework_of(text) == framework


AUTO = '{"train_micro_batch_size_per_gpu": "auto"}'
ALIEN = '{"optimizer": {"type": "Sophia"}}'
DOTTED = '{"optimizer": {"type": "bitsandbytes.optim.AdamW8bit"}}'
TYPO = '{"optimizer": {"type": "AdamWW"}}'
BARE_CONFIG = '{"zero_optimization": {"stage": 2}}'
REMARK = '{"train_micro_batch_size_per_gpu": 1, // one\n"zero_optimization": {"stage": 2}}'
COMMA = '{"train_micro_batch_size_per_gpu": 1,\n"zero_optimization": {"stage": 2},\n}'
PLAIN = '{"train_micro_batch_size_per_gpu": 1}'

#: check, config, packages, and the statuses for: unknown, hf, lightning, accelerate, native
ROWS = [
    pytest.param(
        ds_config_auto_values, AUTO, HF, "ok ok fail ok fail", id="an auto batch size, transformers"
    ),
    pytest.param(
        ds_config_auto_values,
        AUTO,
        BARE,
        "fail ok fail ok fail",
        id="an auto batch size, DeepSpeed alone",
    ),
    pytest.param(
        ds_config_auto_values,
        AUTO,
        ABSENT,
        "skip ok fail ok fail",
        id="an auto batch size, no package",
    ),
    pytest.param(ds_config_auto_values, PLAIN, ABSENT, "ok ok ok ok ok", id="no auto"),
    pytest.param(
        ds_config_auto_values,
        '{"bf16": {"enabled": "auto"}}',
        HF,
        "ok ok warn ok warn",
        id="an auto precision",
    ),
    pytest.param(
        ds_config_batch_mismatch,
        BARE_CONFIG,
        ABSENT,
        "skip fail skip fail fail",
        id="no batch size, no package",
    ),
    pytest.param(
        ds_config_batch_mismatch,
        BARE_CONFIG,
        HF,
        "fail fail skip fail fail",
        id="no batch size, transformers",
    ),
    pytest.param(
        ds_config_batch_mismatch,
        AUTO,
        ABSENT,
        "skip skip skip skip skip",
        id="an auto batch size is a batch size",
    ),
    pytest.param(
        ds_config_unknown_optimizer,
        ALIEN,
        ABSENT,
        "skip fail skip fail skip",
        id="an optimizer of another name",
    ),
    pytest.param(
        ds_config_unknown_optimizer,
        DOTTED,
        ABSENT,
        "skip fail skip fail skip",
        id="an optimizer with a module's name",
    ),
    pytest.param(
        ds_config_unknown_optimizer,
        TYPO,
        ABSENT,
        "fail fail fail fail fail",
        id="a misspelled optimizer",
    ),
    pytest.param(
        ds_config_unknown_optimizer,
        '{"optimizer": {"type": "AdamW"}}',
        ABSENT,
        "ok ok ok ok ok",
        id="an optimizer of DeepSpeed",
    ),
    pytest.param(
        ds_config_unreadable, REMARK, ABSENT, "ok fail fail fail ok", id="a comment in JSON"
    ),
    pytest.param(
        ds_config_unreadable, COMMA, ABSENT, "ok fail fail fail ok", id="a comma too many in JSON"
    ),
    pytest.param(ds_config_unreadable, PLAIN, ABSENT, "ok ok ok ok ok", id="strict JSON"),
]
CHECKS = {
    ds_config_auto_values: ds_config_auto_values.auto_is_filled_in,
    ds_config_batch_mismatch: ds_config_batch_mismatch.batches_fit,
    ds_config_unknown_optimizer: ds_config_unknown_optimizer.optimizer_exists,
    ds_config_unreadable: ds_config_unreadable.config_can_be_read,
}
#: Facts besides the config and the request that each check takes.
TAKEN = {
    ds_config_auto_values: {"packages"},
    ds_config_batch_mismatch: {"packages", "deep_speed_install"},
    ds_config_unknown_optimizer: {"deep_speed_install"},
    ds_config_unreadable: set(),
}


@pytest.mark.parametrize(("module", "text", "packages", "expected"), ROWS)
def test_the_framework_decides(module: ModuleType, text: str, packages: Any, expected: str) -> None:
    facts = {
        name: value
        for name, value in {"packages": packages, "deep_speed_install": NOW}.items()
        if name in TAKEN[module]
    }
    found = [
        " ".join(
            judge(
                CHECKS[module],
                ds_config=config(text),
                run_needs=RunNeeds(framework=framework),
                **facts,
            ).statuses
        )
        for framework in ("", *FRAMEWORKS)
    ]
    assert found == expected.split()


def test_the_line_that_is_not_json_is_named() -> None:
    (found,) = judge(
        ds_config_unreadable.config_can_be_read,
        ds_config=config(COMMA),
        run_needs=RunNeeds(framework="hf"),
    ).findings
    assert found.evidence["line"] in {2, 3}
    assert "the Hugging Face Trainer requires" in found.message


def test_the_script_of_a_command_names_the_framework(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("from transformers import Trainer\n")
    command = ("deepspeed", "train.py", "--deepspeed", "ds.json")
    run = RunNeeds(command=command, cwd=str(tmp_path))
    assert resolve(run, LocalHost()).framework == "hf"
    given = RunNeeds(command=command, cwd=str(tmp_path), framework="native")
    assert resolve(given, LocalHost()).framework == "native"
    absent = RunNeeds(command=("deepspeed", "other.py"), cwd=str(tmp_path))
    assert not resolve(absent, LocalHost()).framework
