"""Rows of `ds-config-unsupported-combination`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_unsupported_combination
from tests.checks.config.rows import NOW, OLD, ZERO, config

MASTER = '{"zero_optimization": {"stage": %s}, "bf16": {"bf16_master_weights_and_grads": true%s}}'
MUON = '{"optimizer": {"type": "Muon"}, "zero_optimization": {"stage": %s%s}}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"fp16": {"enabled": true}, "bf16": {"enabled": false}}', ""),
        ('{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}', ""),
        ('{"fp16": {"enabled": true},\n"bf16": {"enabled": true}}', "`bf16.enabled` (line 2)"),
        (ZERO % (2, '"offload_optimizer": {"device": "cpu"}'), ""),
        (ZERO % ('"auto"', '"offload_optimizer": {"device": "cpu"}'), ""),
        (ZERO % (0, '"offload_optimizer": {"device": "none"}'), ""),
        (ZERO % (0, '"offload_optimizer": {"device": "cpu"}'), "stage is 0"),
        (ZERO % (3, '"offload_param": {"device": "nvme"}'), "`nvme_path` is not set"),
        (ZERO % (3, '"offload_param": {"device": "nvme", "nvme_path": "/nvme"}'), ""),
        (ZERO % (2, '"offload_optimizer": {"device": "cpu", "ratio": 0.5}'), "ratio"),
        (ZERO % (3, '"offload_optimizer": {"device": "cpu", "ratio": 0.5}'), ""),
        ('{"prescale_gradients": true, "zero_optimization": {"stage": 2}}', "prescale"),
        ('{"prescale_gradients": true, "zero_optimization": {"stage": 1}}', ""),
        (
            (
                '{"prescale_gradients": true,'
                ' "zero_optimization": {"stage": 2, "reduce_scatter": false}}'
            ),
            "",
        ),
        ('{"gradient_predivide_factor": 2.0, "zero_optimization": {"stage": 3}}', "is 2"),
        (ZERO % (2, '"cpu_offload": true, "offload_optimizer": {}'), "configure the same feature"),
        ('{"bf16": {"bf16_master_weights_and_grads": true}}', "stage is 0"),
        (MASTER % (2, ""), "on the CPU"),
        (MASTER % (2, ', "bf16_optimizer_states": true'), ""),
        (MASTER.replace("%s}", '%s, "offload_optimizer": {"device": "cpu"}}', 1) % (2, ""), ""),
        (MUON % (3, ""), "`reduce_scatter` disabled"),
        (MUON % (3, ', "reduce_scatter": false'), ""),
        (MUON % (2, ""), ""),
        (
            '{"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}}',
            "`gradient_clipping`",
        ),
        ('{"scheduler": {"type": "WarmupDecayLR", "params": {}}}', "`total_num_steps`"),
        ('{"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}}}', ""),
        ('{"scheduler": {"type": "WarmupLR", "params": {}}}', ""),
    ],
)
def test_unsupported_combination(text: str, words: str) -> None:
    check = ds_config_unsupported_combination.settings_agree
    found = judge(check, ds_config=config(text), deep_speed_install=NOW).bad
    assert len(found) == bool(words)
    assert not words or words in found[0].message


@pytest.mark.parametrize(
    ("precision", "deepspeed", "status"),
    [
        pytest.param("bf16", NOW, "warn", id="bf16"),
        pytest.param("bf16", OLD, "ok", id="older releases cast only under fp16"),
        pytest.param("torch_autocast", NOW, "ok", id="fp32"),
    ],
)
def test_fp16_casts_the_inputs_of_a_bf16_model(
    precision: str, deepspeed: DeepSpeedInstall, status: str
) -> None:
    text = '{"fp16": {"enabled": false, "auto_cast": true}, "%s": {"enabled": true}}'
    check = ds_config_unsupported_combination.settings_agree
    assert (
        judge(check, ds_config=config(text % precision), deep_speed_install=deepspeed).statuses
        == status.split()
    )
