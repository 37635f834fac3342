"""Rows of `ds-config-ignored-setting`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_ignored_setting
from tests.checks.config.rows import NOW, ZERO, config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ZERO % (3, '"offload_param": {"device": "cpu"}'), ""),
        (ZERO % (2, '"offload_param": {"device": "none"}'), ""),
        (ZERO % (2, '"offload_param": {"device": "cpu"}'), "`zero_optimization.offload_param`"),
        (ZERO % (1, '"offload_optimizer": {"device": "nvme"}'), "the stage is 1"),
        ('{"aio": {"intra_op_parallelism": 4}}', ""),
        ('{"aio": {"thread_count": 4}}', "0.16.4"),
        ('{"aio": {"que_depth": 4}}', "no such setting"),
        ('{"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}', ""),
        ('{"fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 2}}', "fixed at 128"),
        ('{"fp16": {"enabled": false, "loss_scale": 128, "hysteresis": 2}}', ""),
        ('{"optimizer": {"type": "Adam", "param": {"lr": 1}}}', "`params`"),
        ('{"scheduler": {"type": "WarmupLR", "param": {}}}', "`params`"),
        ('{"activation_checkpointing": {"cpu_checkpointing": true}}', ""),
        ('{"activation_checkpointing": {"partition_activation": true}}', "no such setting"),
        ('{"optimizer": {"type": "Adam", "params": {}, "legacy_fusion": true}}', ""),
        ('{"optimizer": {"type": "Adam", "params": {}, "weight_decay": 0.1}}', "weight_decay"),
        ('{"scheduler": {"type": "WarmupLR", "params": {}, "warmup_num_steps": 5}}', "warmup_num"),
        ('{"pipeline": {"activation_checkpoint_interval": 1, "use_reentrant": true}}', ""),
        ('{"pipeline": {"stages": "auto", "partition": "best", "seed_layers": false}}', ""),
        ('{"pipeline": {"stages": 4}}', "reads only"),
        ('{"pipeline": {"activation_interval": 1}}', "reads only"),
    ],
)
def test_ignored_setting(text: str, words: str) -> None:
    judged = judge(
        ds_config_ignored_setting.settings_have_effect,
        ds_config=config(text),
        deep_speed_install=NOW,
    )
    assert judged.statuses == ["warn" if words else "ok"]
    assert not words or words in judged.findings[0].message
