"""Rows of `ds-config-unsupported-combination`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall, LaunchCommand, ScriptImports
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
            (MUON % (2, ', "offload_optimizer": {"device": "cpu"}')).replace(
                '"zero', '"bf16": {"bf16_master_weights_and_grads": true}, "zero'
            ),
            "need Adam on the CPU",
            id="bf16 master weights with Muon on the CPU",
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


SGD = '{"optimizer": {"type": "SGD", "params": {"lr": 0.1}}, "zero_optimization": {"stage": %s}%s}'
STEP = '{"scheduler": {"type": "StepLR", "params": {%s}}, %s}'
NORM = '{"zero_optimization": {"stage": %s, "compute_grad_norm": false%s}, "gradient_clipping": %s}'
ZEN = '{"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 0.1, %s}}}'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(SGD % (1, ""), "`zero_allow_untested_optimizer`", id="SGD with ZeRO"),
        pytest.param(SGD % (0, ""), "", id="SGD without ZeRO"),
        pytest.param(SGD % (2, ', "zero_allow_untested_optimizer": true'), "", id="it is allowed"),
        pytest.param(
            STEP % ('"step_size": 1', '"fp16": {"enabled": true}'), "wraps", id="a wrapper"
        ),
        pytest.param(STEP % ('"step_size": 1', '"fp16": {"enabled": false}'), "", id="no wrapper"),
        pytest.param(STEP % ("", '"steps_per_print": 1'), "`step_size`", id="torch's own needs"),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR"}}', "`scheduler.params` is not set", id="no params"
        ),
        pytest.param(
            '{"optimizer": {"type": "AdamW", "params": {"amsgrad": true}}}', "AMSGrad", id="AMSGrad"
        ),
        pytest.param(
            '{"optimizer": {"type": "AdamW", "params": {"amsgrad": true, "torch_adam": true}}}',
            "",
            id="torch's AdamW has AMSGrad",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adagrad"}, "zero_optimization": {"stage": 3,'
            ' "offload_optimizer": {"device": "cpu", "ratio": 0.5}}}',
            "partial offload",
            id="a part of Adagrad on the CPU",
        ),
        pytest.param(ZERO % (1, '"legacy_stage1": true'), "0.5.9", id="the old stage 1"),
        pytest.param(ZERO % (0, '"legacy_stage1": true'), "", id="no stage is no old one"),
        pytest.param(NORM % (3, "", 0), "stages 1 and 2", id="a norm of stage 3"),
        pytest.param(NORM % (1, "", 0.5), "`gradient_clipping`", id="clipping by a norm"),
        pytest.param(NORM % (1, "", 0), "", id="no norm is needed"),
        pytest.param(
            NORM % (2, ', "offload_optimizer": {"device": "cpu"}', 0), "the norm", id="offload"
        ),
        pytest.param(
            '{"managed_gradient_accumulation": false, "zero_optimization": {"stage": 1,'
            ' "overlap_comm": true}}',
            "incompatible",
            id="accumulation by the script with overlap",
        ),
        pytest.param(
            '{"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": true}}',
            "without ZeRO",
            id="sums in fp32 of a bf16 model",
        ),
        pytest.param(
            '{"data_types": {"grad_accum_dtype": "float"}, "bf16": {"enabled": "auto"}}',
            "",
            id="a trainer decides on the model",
        ),
        pytest.param(
            '{"data_types": {"param_dtype": "bf16"}, "fp16": {"enabled": true}}',
            "make the model fp16",
            id="weights of another type",
        ),
        pytest.param(
            '{"torch_autocast": {"enabled": true}, "zero_optimization": {"stage": 3,'
            ' "zero_quantized_weights": true}}',
            "incompatible",
            id="autocast of quantized weights",
        ),
        pytest.param(
            ZERO % (3, '"zero_quantized_gradients": true, "reduce_scatter": false'),
            "reduced by scatter",
            id="quantized gradients without scatter",
        ),
        pytest.param(ZEN % '"select_interval": 4', '"auto"', id="ZenFlow chooses the interval"),
        pytest.param(ZEN % '"select_strategy": "step"', "a number", id="ZenFlow by steps"),
        pytest.param(ZEN % '"update_interval": 4', "", id="ZenFlow chooses all"),
        pytest.param(
            ZEN % '"select_strategy": "step", "select_interval": 2, "update_interval": 4',
            "not below",
            id="ZenFlow updates less often than it selects",
        ),
        pytest.param(
            '{"data_efficiency": {"data_sampling": {"dynamic_batching": {"enabled": true}}}}',
            "`max_tokens`",
            id="batches of any size",
        ),
    ],
)
def test_what_the_engine_rejects(text: str, words: str) -> None:
    check = ds_config_unsupported_combination.settings_agree
    found = judge(check, ds_config=config(text), deep_speed_install=NOW).bad
    assert [words in one.message for one in found] == [True] * bool(words)


def test_releases_before_0_18_5_sum_in_fp32_without_zero() -> None:
    text = '{"data_types": {"grad_accum_dtype": "fp32"}, "bf16": {"enabled": true}}'
    check = ds_config_unsupported_combination.settings_agree
    old = DeepSpeedInstall(version="0.18.4")
    assert judge(check, ds_config=config(text), deep_speed_install=old).bad == []


OWN = ScriptImports(script="train.py", prepared={"optimizer": 7, "scheduler": 9})
BOTH = '{"optimizer": {"type": "AdamW"}, "scheduler": {"type": "WarmupLR", "params": {}}}'
AUTO = '{"optimizer": {"type": "auto"}}'


@pytest.mark.parametrize(
    ("text", "launcher", "script", "words"),
    [
        pytest.param(BOTH, "accelerate", OWN, ["optimizer", "scheduler"], id="both"),
        pytest.param(AUTO, "accelerate", OWN, ["optimizer"], id="an optimizer with auto"),
        pytest.param("{}", "accelerate", OWN, [], id="a config without them"),
        pytest.param(BOTH, "torchrun", OWN, [], id="Accelerate does not use DeepSpeed"),
        pytest.param(BOTH, "accelerate", ScriptImports(script="t.py"), [], id="a script without"),
        pytest.param(BOTH, "accelerate", None, [], id="a script that cannot be read"),
    ],
)
def test_what_accelerate_gets_twice(
    text: str, launcher: str, script: ScriptImports | None, words: list[str]
) -> None:
    facts: dict[str, Any] = {} if script is None else {"script_imports": script}
    found = judge(
        ds_config_unsupported_combination.settings_agree,
        ds_config=config(text),
        deep_speed_install=NOW,
        launch_command=LaunchCommand(argv=(launcher, "train.py"), launcher=launcher),
        **facts,
    ).bad
    assert [row.evidence["setting"] for row in found] == words
    for row in found:
        assert row.status.value == "fail"
        assert "`train.py` creates the " in row.message
    if words == ["optimizer", "scheduler"]:
        assert (
            "`accelerate.utils.DummyOptim` and `accelerate.utils.DummyScheduler`" in found[0].hint
        )
