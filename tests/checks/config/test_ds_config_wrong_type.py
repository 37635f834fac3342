"""Rows of `ds-config-wrong-type`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_wrong_type
from tests.checks.config.rows import NOW, OLD, config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"train_batch_size": 8, "gradient_clipping": 1.0, "steps_per_print": 1e5}', ""),
        ('{"train_batch_size": "auto", "gradient_clipping": "auto"}', ""),
        ('{"optimizer": {"type": "Adafactor", "params": {"eps": [1e-30, 1e-3]}}}', ""),
        ('{"zero_optimization": true}', ""),
        ('{"zero_optimization": {"stage": "3", "reduce_bucket_size": 2e8}}', ""),
        ('{"fp16": {"enabled": "false"}}', ""),
        ('{"train_micro_batch_size_per_gpu": "4"}', 'is "4"'),
        ('{"gradient_clipping": "1.0"}', "a number"),
        ('{"wall_clock_breakdown": "false"}', "without quotes"),
        ('{"fp16": true}', "an object"),
        ('{"fp16": {"enabled": True,\n"loss_scale": 0}}', "`True,`"),
        ('{"zero_optimization": {"stage": 4}}', "0, 1, 2 or 3"),
        ('{"zero_optimization": {"offload_param": {"device": "gpu"}}}', "`nvme`"),
        ('{"zero_optimization": {"reduce_bucket_size": 1.5}}', "is 1.5"),
        ('{"optimizer": {"params": {"lr": "1e-5"}}}', "a number"),
        ('{"zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}}', ""),
        ('{"zero_optimization": {"stage": 3, "allgather_bucket_size": 7}}', ""),
        ('{"zero_optimization": {"stage": 2, "allgather_bucket_size": 7}}', "even"),
        ('{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}', ""),
        ('{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}', ""),
        ('{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}', "above 0"),
        ('{"fp16": {"enabled": true, "min_loss_scale": 1}}', ""),
        ('{"fp16": {"enabled": true, "min_loss_scale": 0}}', "`fp16.min_loss_scale`"),
        ('{"fp16": {"enabled": true, "min_loss_scale": 0, "loss_scale": 128}}', ""),
        ('{"fp16": {"enabled": "auto", "min_loss_scale": 0}}', ""),
        ('{"fp16": {"enabled": true, "loss_scale_window": 0}}', "`fp16.loss_scale_window`"),
    ],
)
def test_wrong_type(text: str, words: str) -> None:
    found = judge(
        ds_config_wrong_type.values_are_of_their_kind,
        ds_config=config(text),
        deep_speed_install=NOW,
    ).bad
    assert len(found) == bool(words), found
    assert not words or words in found[0].message


def test_older_releases_warm_up_in_no_steps() -> None:
    text = '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}'
    check = ds_config_wrong_type.values_are_of_their_kind
    assert judge(check, ds_config=config(text), deep_speed_install=OLD).status == "ok"
    assert (
        len(
            judge(
                check, ds_config=config(text), deep_speed_install=DeepSpeedInstall(version="0.19.3")
            ).bad
        )
        == 1
    )
