"""Settings that a training script passes itself, and those of the Trainer that do not go together."""

from __future__ import annotations

import ast

import pytest

from dsdoctor.api import LaunchCommand
from dsdoctor.probes.script_options import options_of
from dsdoctor.scripts.call_settings import settings_of
from dsdoctor.scripts.trainer_rules import refusal
from dsdoctor.testing import FakeHost
from tests.checks.machines import ABSENT

HEAD = "from transformers import AutoModel, LlamaConfig, TrainingArguments\n"
WANDB = [("report_to", "wandb")]
FLASH = [("attn_implementation", "flash_attention_2")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("a = TrainingArguments('o', report_to='wandb')", WANDB, id="a text"),
        pytest.param("TrainingArguments(report_to=['wandb'], optim=f())", WANDB, id="a list"),
        pytest.param("T = 'wandb'\nTrainingArguments(report_to=T)", WANDB, id="a constant"),
        pytest.param(
            "def main():\n    TrainingArguments(report_to='wandb')\nmain()", WANDB, id="a function"
        ),
        pytest.param(
            "AutoModel.from_pretrained('m', attn_implementation='flash_attention_2')",
            FLASH,
            id="a model",
        ),
        pytest.param(
            "LlamaConfig(attn_implementation='flash_attention_2')", FLASH, id="its config"
        ),
        pytest.param("from trl import SFTConfig\nSFTConfig(report_to='wandb')", WANDB, id="trl"),
        pytest.param("TrainingArguments(report_to=args.report_to)", [], id="of the command"),
        pytest.param("if x:\n    TrainingArguments(report_to='wandb')", [], id="perhaps"),
        pytest.param("def f():\n    TrainingArguments(report_to='wandb')", [], id="not called"),
        pytest.param(
            "try:\n    AutoModel.from_pretrained('m', attn_implementation='flash_attention_2')\n"
            "except ImportError: pass",
            [],
            id="with another way",
        ),
        pytest.param(
            "from mine import TrainingArguments\nTrainingArguments(report_to='wandb')",
            [],
            id="mine",
        ),
        pytest.param("print(report_to='wandb')", [], id="another call"),
    ],
)
def test_settings_in_a_script(text: str, expected: list[tuple[str, str]]) -> None:
    tree = ast.parse(HEAD + text)
    assert [(one.argument, one.value) for one in settings_of(tree)] == expected


BEST = {"load_best_model_at_end": ""}
MATCH = "--load_best_model_at_end requires the save and eval strategy to match"
MULTIPLE = "--load_best_model_at_end requires the saving steps to be a round multiple"


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        pytest.param({"fp16": "", "bf16": "true"}, "fp16 and bf16 are both on", id="two formats"),
        pytest.param({"fp16": "False", "bf16": "true"}, "", id="one format"),
        pytest.param(BEST, MATCH, id="best without evaluation"),
        pytest.param({**BEST, "eval_strategy": "epoch"}, MATCH, id="saves in steps"),
        pytest.param({**BEST, "eval_strategy": "epoch", "save_strategy": "epoch"}, "", id="epochs"),
        pytest.param({**BEST, "save_strategy": "best"}, "", id="best saves"),
        pytest.param({**BEST, "evaluation_strategy": "steps"}, "", id="the old name, defaults"),
        pytest.param(
            {**BEST, "eval_strategy": "steps", "eval_steps": "100", "save_steps": "150"},
            MULTIPLE, id="no multiple",
        ),
        pytest.param(
            {**BEST, "eval_strategy": "steps", "eval_steps": "0.1", "save_steps": "150"}, "",
            id="a part of the run",
        ),
        pytest.param({"load_best_model_at_end": "False"}, "", id="switched off"),
        pytest.param(
            {"lr_scheduler_type": "reduce_lr_on_plateau"}, "lr_scheduler_type reduce_lr", id="plateau"
        ),
        pytest.param(
            {"dataloader_prefetch_factor": "2"}, "--dataloader_prefetch_factor", id="prefetch"
        ),
        pytest.param(
            {"dataloader_prefetch_factor": "2", "dataloader_num_workers": "4"}, "", id="workers"
        ),
    ],
)  # fmt: skip
def test_options_of_the_trainer_that_do_not_go_together(
    options: dict[str, str], expected: str
) -> None:
    said = refusal(options)
    assert (said.startswith(expected) and said != "") if expected else not said


@pytest.mark.parametrize(
    "options", [{"fp16": True, "bf16": True}, {"load_best_model_at_end": True}]
)
def test_transformers_says_the_same(options: dict[str, bool]) -> None:
    arguments = pytest.importorskip("transformers.training_args")
    with pytest.raises(ValueError, match=r"At most one|load_best_model") as raised:
        arguments.TrainingArguments(output_dir="o", use_cpu=True, **options)
    said = refusal(dict.fromkeys(options, ""))
    named = [word for word in said.replace(";", "").split() if "_" in word or "16" in word]
    assert named
    assert named[0].strip("-") in str(raised.value)


@pytest.mark.parametrize(
    ("parser", "expected"),
    [
        pytest.param("TrainingArguments", "fp16 and bf16 are both on", id="of transformers"),
        pytest.param("Mine", "", id="of the script"),
    ],
)
def test_the_rules_hold_for_scripts_that_fill_the_arguments(parser: str, expected: str) -> None:
    text = (
        "from dataclasses import dataclass\n"
        "from transformers import HfArgumentParser, TrainingArguments\n"
        "@dataclass\nclass Mine:\n    fp16: bool = False\n    bf16: bool = False\n"
        f"HfArgumentParser({parser}).parse_args_into_dataclasses()\n"
    )
    source = (
        "from dataclasses import dataclass\n@dataclass\nclass TrainingArguments:\n"
        "    fp16: bool = False\n    bf16: bool = False\n"
    )
    host = FakeHost(files={"/job/t.py": text, "/job/transformers.py": source})
    command = LaunchCommand(script="t.py", script_args=("--fp16", "--bf16"))
    said = options_of(host, "/job", command, "t.py", ABSENT).refusal
    assert said.startswith(expected)
    assert bool(said) == bool(expected)
