"""Rows of `ds-config-invalid-key`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor_checks.config import ds_config_invalid_key
from tests.checks.config.rows import ABSENT, NOW, OLD, config, statuses


@pytest.mark.parametrize(
    ("text", "deepspeed", "status", "words"),
    [
        ('{"train_batch_size": 8, "zero_optimization": {"stage": 3}}', NOW, "", ""),
        ('{"_comment": "x", "$schema": "y"}', NOW, "", ""),
        ('{"trian_batch_size": 8}', NOW, "warn", "`train_batch_size` is"),
        ('{"offload_optimizer": {}}', NOW, "warn", "of `zero_optimization`"),
        ('{"my_setting": 1}', NOW, "warn", "no top-level key"),
        ('{"my_setting": 1}', DeepSpeedInstall(version="0.25.0"), "", ""),
        ('{\n"zero_optimization": {\n"overlap_com": true}}', NOW, "fail", "(line 3)"),
        ('{"zero_optimization": {"brand_new": 1}}', DeepSpeedInstall(version="0.20.0"), "", ""),
        ('{"fp16": {"opt_level": "O1"}}', NOW, "fail", "`fp16.opt_level`"),
        ('{"fp16": {"opt_level": "O1"}}', OLD, "warn", "`fp16.opt_level`"),
        ('{"nebula": {"enabled": false}}', NOW, "fail", "0.19.7"),
        ('{"nebula": {"enabled": false}}', OLD, "", ""),
        ('{"zero_optimization": {"mics_shard_size": 2}}', NOW, "fail", "mics_shard_size"),
        ('{"zero_optimization": {"mics_shard_size": 2}}', OLD, "", ""),
        ('{"trian_batch_size": 8}', ABSENT, "warn", "train_batch_size"),
        ('{"tensorboard": {"output_dir": "logs"}}', NOW, "fail", "`tensorboard.output_dir`"),
    ],
)
def test_invalid_key(text: str, deepspeed: Any, status: str, words: str) -> None:
    found = list(ds_config_invalid_key.keys_are_known.function(config(text), deepspeed, ABSENT))
    assert statuses(found) == status
    assert not words or words in found[0].message
