"""Rows of `ds-config-auto-values`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_auto_values
from tests.checks.config.rows import ABSENT, BARE, HF, config


@pytest.mark.parametrize(
    ("text", "packages", "argv", "status"),
    [
        pytest.param('{"train_batch_size": 8}', BARE, "", "ok", id="no value is auto"),
        pytest.param(
            '{"train_batch_size": "auto"}',
            HF,
            "",
            "ok",
            id="transformers fills in an auto batch size",
        ),
        pytest.param(
            '{"train_batch_size": "auto"}',
            BARE,
            "",
            "fail",
            id="an auto batch size without a library that fills it in",
        ),
        pytest.param(
            '{"optimizer": {"params": {"lr": "auto"}}}',
            BARE,
            "",
            "fail",
            id="an auto learning rate without a library that fills it in",
        ),
        pytest.param(
            '{"fp16": {"enabled": "auto"}}',
            BARE,
            "",
            "warn",
            id="an auto fp16 without a library that fills it in does not crash",
        ),
        pytest.param(
            '{"fp16": {"enabled": "auto"}}',
            ABSENT,
            "",
            "skip",
            id="an auto fp16, and the packages are unknown",
        ),
        pytest.param(
            '{"bf16": {"enabled": "auto"}}', HF, "", "ok", id="transformers fills in an auto bf16"
        ),
        pytest.param(
            '{"bfloat16": {"enabled": "auto"}}',
            HF,
            "",
            "warn ok",
            id="transformers does not fill in the older name of bf16",
        ),
        pytest.param(
            '{"bfloat16": {"enabled": "auto"}, "bf16": {"enabled": true}}',
            HF,
            "",
            "ok",
            id="the older name of bf16 is auto, but the current name decides",
        ),
        pytest.param(
            '{"train_batch_size": "auto"}',
            HF,
            "deepspeed t.py --deepspeed ds.json",
            "ok",
            id="the Trainer gets the config by --deepspeed",
        ),
        pytest.param(
            '{"train_batch_size": "auto"}',
            HF,
            "deepspeed t.py --deepspeed_config ds.json",
            "warn",
            id="DeepSpeed gets the config by --deepspeed_config, past the Trainer",
        ),
    ],
)
def test_auto_values(text: str, packages: Any, argv: str, status: str) -> None:
    command = parse_command(argv.split()) if argv else ABSENT
    check = ds_config_auto_values.auto_is_filled_in
    assert (
        judge(check, ds_config=config(text), packages=packages, launch_command=command).statuses
        == status.split()
    )


@pytest.mark.parametrize(
    ("text", "framework", "keys"),
    [
        pytest.param(
            '{"zero_optimization": {"stage": "auto", "sub_group_size": "auto"}}',
            "hf",
            ["zero_optimization.sub_group_size"],
            id="a size that nothing calculates",
        ),
        pytest.param(
            '{"bfloat16": {"enabled": "auto"}}',
            "accelerate",
            ["bfloat16.enabled"],
            id="the older name of bf16",
        ),
        pytest.param('{"steps_per_print": "auto"}', "accelerate", [], id="accelerate sets it"),
        pytest.param(
            '{"optimizer": {"type": "auto", "params": {"betas": "auto"}}}',
            "hf",
            ["optimizer.type"],
            id="which optimizer is not an option of the Trainer",
        ),
        pytest.param(
            '{"zero_optimization": {"sub_group_size": "auto"}}',
            "",
            [],
            id="DeepSpeed itself takes its default",
        ),
    ],
)
def test_what_no_trainer_fills_in(text: str, framework: str, keys: list[str]) -> None:
    """accelerate stops at the first "auto" for which it has no value."""
    found = judge(
        ds_config_auto_values.auto_is_filled_in,
        ds_config=config(text),
        packages=HF,
        run_needs=RunNeeds(framework=framework),
    ).bad
    assert [one.evidence["key"] for one in found] == keys
