"""Rows of `ds-config-auto-values`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_auto_values
from tests.checks.config.rows import ABSENT, BARE, HF, config


@pytest.mark.parametrize(
    ("text", "packages", "argv", "status"),
    [
        ('{"train_batch_size": 8}', BARE, "", "ok"),
        ('{"train_batch_size": "auto"}', HF, "", "ok"),
        ('{"train_batch_size": "auto"}', BARE, "", "fail"),
        ('{"optimizer": {"params": {"lr": "auto"}}}', BARE, "", "fail"),
        ('{"fp16": {"enabled": "auto"}}', BARE, "", "warn"),
        ('{"fp16": {"enabled": "auto"}}', ABSENT, "", "skip"),
        ('{"bf16": {"enabled": "auto"}}', HF, "", "ok"),
        ('{"bfloat16": {"enabled": "auto"}}', HF, "", "warn ok"),
        ('{"bfloat16": {"enabled": "auto"}, "bf16": {"enabled": true}}', HF, "", "ok"),
        ('{"train_batch_size": "auto"}', HF, "deepspeed t.py --deepspeed ds.json", "ok"),
        ('{"train_batch_size": "auto"}', HF, "deepspeed t.py --deepspeed_config ds.json", "warn"),
    ],
)
def test_auto_values(text: str, packages: Any, argv: str, status: str) -> None:
    command = parse_command(argv.split()) if argv else ABSENT
    check = ds_config_auto_values.auto_is_filled_in
    assert (
        judge(check, ds_config=config(text), packages=packages, launch_command=command).statuses
        == status.split()
    )
