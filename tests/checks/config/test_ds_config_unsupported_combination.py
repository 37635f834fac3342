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
        pytest.param(
            '{"fp16": {"enabled": true}, "bf16": {"enabled": false}}', "", id="fp16 on and bf16 off"
        ),
        pytest.param(
            '{"fp16": {"enabled": "auto"}, "bf16": {"enabled": "auto"}}',
            "",
            id="fp16 and bf16 both auto",
        ),
        pytest.param(
            '{"fp16": {"enabled": true},\n"bf16": {"enabled": true}}',
            "`bf16.enabled` (line 2)",
            id="fp16 and bf16 both on",
        ),
        pytest.param(
            ZERO % (2, '"offload_optimizer": {"device": "cpu"}'),
            "",
            id="ZeRO-2 with the optimizer on the CPU",
        ),
        pytest.param(
            ZERO % ('"auto"', '"offload_optimizer": {"device": "cpu"}'),
            "",
            id="an auto stage with the optimizer on the CPU",
        ),
        pytest.param(
            ZERO % (0, '"offload_optimizer": {"device": "none"}'),
            "",
            id="stage 0 with offload set to none",
        ),
        pytest.param(
            ZERO % (0, '"offload_optimizer": {"device": "cpu"}'),
            "stage is 0",
            id="stage 0 with the optimizer on the CPU",
        ),
        pytest.param(
            ZERO % (3, '"offload_param": {"device": "nvme"}'),
            "`nvme_path` is not set",
            id="parameters on NVMe without a path",
        ),
        pytest.param(
            ZERO % (3, '"offload_param": {"device": "nvme", "nvme_path": "/nvme"}'),
            "",
            id="parameters on NVMe with a path",
        ),
        pytest.param(
            ZERO % (2, '"offload_optimizer": {"device": "cpu", "ratio": 0.5}'),
            "ratio",
            id="ZeRO-2 with half of the optimizer offloaded",
        ),
        pytest.param(
            ZERO % (3, '"offload_optimizer": {"device": "cpu", "ratio": 0.5}'),
            "",
            id="ZeRO-3 with half of the optimizer offloaded",
        ),
        pytest.param(
            '{"prescale_gradients": true, "zero_optimization": {"stage": 2}}',
            "prescale",
            id="prescaled gradients with ZeRO-2",
        ),
        pytest.param(
            '{"prescale_gradients": true, "zero_optimization": {"stage": 1}}',
            "",
            id="prescaled gradients with ZeRO-1",
        ),
        pytest.param(
            (
                '{"prescale_gradients": true,'
                ' "zero_optimization": {"stage": 2, "reduce_scatter": false}}'
            ),
            "",
            id="prescaled gradients with ZeRO-2 that does not reduce by scatter",
        ),
        pytest.param(
            '{"gradient_predivide_factor": 2.0, "zero_optimization": {"stage": 3}}',
            "is 2",
            id="a predivide factor with ZeRO-3",
        ),
        pytest.param(
            ZERO % (2, '"cpu_offload": true, "offload_optimizer": {}'),
            "configure the same feature",
            id="offload under its older and its current name",
        ),
        pytest.param(
            '{"bf16": {"bf16_master_weights_and_grads": true}}',
            "stage is 0",
            id="bf16 master weights without ZeRO",
        ),
        pytest.param(
            MASTER % (2, ""),
            "on the CPU",
            id="bf16 master weights with ZeRO-2 and states in 32 bits on the GPU",
        ),
        pytest.param(
            MASTER % (2, ', "bf16_optimizer_states": true'),
            "",
            id="bf16 master weights and bf16 states with ZeRO-2",
        ),
        pytest.param(
            MASTER.replace("%s}", '%s, "offload_optimizer": {"device": "cpu"}}', 1) % (2, ""),
            "",
            id="bf16 master weights with ZeRO-2 and the optimizer on the CPU",
        ),
        pytest.param(
            MUON % (3, ""),
            "`reduce_scatter` disabled",
            id="Muon with ZeRO-3 that reduces by scatter",
        ),
        pytest.param(
            MUON % (3, ', "reduce_scatter": false'),
            "",
            id="Muon with ZeRO-3 that does not reduce by scatter",
        ),
        pytest.param(MUON % (2, ""), "", id="Muon with ZeRO-2"),
        pytest.param(
            '{"optimizer": {"type": "Adam", "params": {"max_grad_norm": 1.0}}}',
            "`gradient_clipping`",
            id="a maximal norm in the optimizer's parameters",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupDecayLR", "params": {}}}',
            "`total_num_steps`",
            id="a decaying scheduler without its number of steps",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupDecayLR", "params": {"total_num_steps": "auto"}}}',
            "",
            id="a decaying scheduler whose number of steps is auto",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "params": {}}}',
            "",
            id="a warm-up scheduler, which needs no number of steps",
        ),
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
