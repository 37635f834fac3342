"""Rows of `ds-config-ignored-setting`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_ignored_setting
from tests.checks.config.rows import NOW, ZERO, config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            ZERO % (3, '"offload_param": {"device": "cpu"}'), "", id="ZeRO-3 offloads parameters"
        ),
        pytest.param(
            ZERO % (2, '"offload_param": {"device": "none"}'),
            "",
            id="ZeRO-2 with parameter offload set to none",
        ),
        pytest.param(
            ZERO % (2, '"offload_param": {"device": "cpu"}'),
            "`zero_optimization.offload_param`",
            id="ZeRO-2 does not offload parameters",
        ),
        pytest.param(
            ZERO % (1, '"offload_optimizer": {"device": "nvme"}'),
            "the stage is 1",
            id="ZeRO-1 does not offload the optimizer to NVMe",
        ),
        pytest.param(
            '{"aio": {"intra_op_parallelism": 4}}', "", id="a setting of aio that is read"
        ),
        pytest.param(
            '{"aio": {"thread_count": 4}}',
            "0.16.4",
            id="a setting of aio that was renamed in 0.16.4",
        ),
        pytest.param(
            '{"aio": {"que_depth": 4}}', "no such setting", id="a misspelled setting of aio"
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}',
            "",
            id="a dynamic loss scale with its first power",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 2}}',
            "fixed at 128",
            id="a fixed loss scale does not use hysteresis",
        ),
        pytest.param(
            '{"fp16": {"enabled": false, "loss_scale": 128, "hysteresis": 2}}',
            "",
            id="a fixed loss scale of an fp16 that is off",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adam", "param": {"lr": 1}}}',
            "`params`",
            id="the optimizer's parameters under param instead of params",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "param": {}}}',
            "`params`",
            id="the scheduler's parameters under param instead of params",
        ),
        pytest.param(
            '{"activation_checkpointing": {"cpu_checkpointing": true}}',
            "",
            id="a setting of activation checkpointing that is read",
        ),
        pytest.param(
            '{"activation_checkpointing": {"partition_activation": true}}',
            "no such setting",
            id="a misspelled setting of activation checkpointing",
        ),
        pytest.param(
            '{"flops_profiler": {"enable": true, "profile_step": 5}}',
            "`flops_profiler` has no such setting",
            id="a misspelled setting of the FLOPS profiler",
        ),
        pytest.param(
            '{"flops_profiler": {"enabled": false, "warmup": 5}}',
            "",
            id="an unknown setting of a profiler that is off",
        ),
        pytest.param(
            '{"activation_checkpointing": {"profile": false, "_comment": "off"}}',
            "",
            id="a comment in a section",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adam", "params": {}, "legacy_fusion": true}}',
            "",
            id="legacy_fusion stands beside the optimizer's params",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adam", "params": {}, "weight_decay": 0.1}}',
            "weight_decay",
            id="weight decay outside the optimizer's params",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "params": {}, "warmup_num_steps": 5}}',
            "warmup_num",
            id="warm-up steps outside the scheduler's params",
        ),
        pytest.param(
            '{"pipeline": {"activation_checkpoint_interval": 1, "use_reentrant": true}}',
            "",
            id="the settings of the pipeline that are read",
        ),
        pytest.param(
            '{"pipeline": {"stages": "auto", "partition": "best", "seed_layers": false}}',
            "",
            id="the defaults of the pipeline",
        ),
        pytest.param(
            '{"pipeline": {"stages": 4}}',
            "reads only",
            id="a number of pipeline stages that only the model sets",
        ),
        pytest.param(
            '{"pipeline": {"activation_interval": 1}}',
            "reads only",
            id="a misspelled setting of the pipeline",
        ),
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


@pytest.mark.parametrize(
    ("text", "version", "words"),
    [
        pytest.param(
            '{"comms_logger": {"enabled": false}}', "0.19.8",
            "`comms_logger` turns this on wherever it is present", id="a logger that is off",
        ),
        pytest.param('{"comms_logger": {"enabled": false}}', "0.9.0", "wherever", id="since ever"),
        pytest.param('{"comms_logger": {"enabled": true}}', "0.19.8", "", id="a logger that is on"),
        pytest.param('{"comms_logger": {"verbose": true}}', "0.19.8", "", id="a logger"),
        pytest.param('{"datastates_ckpt": {"enabled": false}}', "0.18.1", "wherever", id="a writer"),
        pytest.param('{"datastates_ckpt": null}', "0.18.1", "except `false`", id="null"),
        pytest.param('{"datastates_ckpt": "false"}', "0.18.1", "except `false`", id="in quotes"),
        pytest.param('{"datastates_ckpt": false}', "0.18.1", "", id="the word that is off"),
        pytest.param('{"datastates_ckpt": {"host_cache_size": 1}}', "0.18.1", "", id="meant"),
        pytest.param('{"datastates_ckpt": {"enabled": false}}', "0.18.0", "", id="not yet there"),
        pytest.param(
            '{"checkpoint": {"writer": {"enabled": false}}}', "0.19.8", "wherever", id="own writer"
        ),
        pytest.param(
            '{"weight_quantization": {"enabled": false, "quantized_initialization": {"a": 1}}}',
            "0.19.8", "wherever", id="weights that are quantized",
        ),
        pytest.param('{"weight_quantization": {"enabled": false}}', "0.19.8", "", id="nothing"),
        pytest.param('{"tensorboard": {"enabled": false}}', "0.19.8", "", id="a section that is read"),
    ],
)  # fmt: skip
def test_a_section_that_is_present_is_on(text: str, version: str, words: str) -> None:
    judged = judge(
        ds_config_ignored_setting.settings_have_effect,
        ds_config=config(text),
        deep_speed_install=DeepSpeedInstall(version=version),
    )
    assert judged.statuses == ["warn" if words else "ok"]
    assert not words or words in judged.findings[0].message
