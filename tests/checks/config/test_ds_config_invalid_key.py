"""Rows of `ds-config-invalid-key`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import ClassParameters, ConfigVerdict, DeepSpeedInstall, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_invalid_key
from tests.checks.config.rows import ABSENT, NOW, OLD, config


@pytest.mark.parametrize(
    ("text", "deepspeed", "status", "words"),
    [
        pytest.param(
            '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
            NOW,
            "ok",
            "",
            id="keys that every release reads",
        ),
        pytest.param(
            '{"_comment": "x", "$schema": "y"}',
            NOW,
            "ok",
            "",
            id="keys for comments and for a schema",
        ),
        pytest.param(
            '{"trian_batch_size": 8}',
            NOW,
            "warn",
            "the closest is `train_batch_size`",
            id="two letters of a top-level key are swapped",
        ),
        pytest.param(
            '{"offload_optimizer": {}}',
            NOW,
            "warn",
            "belongs in `zero_optimization`",
            id="a key of ZeRO at the top level",
        ),
        pytest.param(
            '{"my_setting": 1}',
            NOW,
            "warn",
            "not a top-level key",
            id="a key of the user's own at the top level",
        ),
        pytest.param(
            '{"my_setting": 1}',
            DeepSpeedInstall(version="0.25.0"),
            "ok",
            "",
            id="a key unknown to a release newer than the table",
        ),
        pytest.param(
            '{\n"zero_optimization": {\n"overlap_com": true}}',
            NOW,
            "fail",
            "(line 3)",
            id="a misspelled key of ZeRO, which DeepSpeed refuses",
        ),
        pytest.param(
            '{"zero_optimization": {"brand_new": 1}}',
            DeepSpeedInstall(version="0.20.0"),
            "ok",
            "",
            id="a key of ZeRO unknown to a release newer than the table",
        ),
        pytest.param(
            '{"fp16": {"opt_level": "O1"}}',
            NOW,
            "fail",
            "`fp16.opt_level`",
            id="a key of Apex, which current releases refuse",
        ),
        pytest.param(
            '{"fp16": {"opt_level": "O1"}}',
            OLD,
            "warn",
            "`fp16.opt_level`",
            id="a key of Apex, which older releases ignore",
        ),
        pytest.param(
            '{"nebula": {"enabled": false}}',
            NOW,
            "fail",
            "0.19.7",
            id="a section that 0.19.7 removed",
        ),
        pytest.param(
            '{"nebula": {"enabled": false}}',
            OLD,
            "ok",
            "",
            id="a section in a release that still has it",
        ),
        pytest.param(
            '{"zero_optimization": {"mics_shard_size": 2}}',
            NOW,
            "fail",
            "mics_shard_size",
            id="a key of ZeRO that is gone",
        ),
        pytest.param(
            '{"zero_optimization": {"mics_shard_size": 2}}',
            OLD,
            "ok",
            "",
            id="a key of ZeRO in a release that still has it",
        ),
        pytest.param(
            '{"trian_batch_size": 8}',
            ABSENT,
            "warn",
            "train_batch_size",
            id="a misspelled key, and the release is unknown",
        ),
        pytest.param(
            '{"tensorboard": {"output_dir": "logs"}}',
            NOW,
            "fail",
            "`tensorboard.output_dir`",
            id="a key of TensorBoard that does not exist",
        ),
    ],
)
def test_invalid_key(text: str, deepspeed: Any, status: str, words: str) -> None:
    judged = judge(
        ds_config_invalid_key.keys_are_known, ds_config=config(text), deep_speed_install=deepspeed
    )
    assert judged.statuses == status.split()
    assert not words or words in judged.findings[0].message


COSINE = '{"scheduler": {"type": "WarmupCosineLR", "params": {"total_num_steps": 9, %s}}}'
ADAMW = '{"optimizer": {"type": "AdamW", "params": {"lr": 1, %s}}}'
SIGNATURES = ConfigVerdict(
    version="0.19.8",
    parameters={
        "optimizer": ClassParameters(cls="FusedAdam", names=("lr", "weight_decay")),
        "scheduler": ClassParameters(cls="Warmup", names=("total_num_steps", "slope")),
    },
)


@pytest.mark.parametrize(
    ("text", "verdict", "key", "hint"),
    [
        pytest.param(COSINE % '"cos_min_ratio": 0.1', ABSENT, "", "", id="in the table"),
        pytest.param(
            COSINE % '"warmup_min_lr": 0', ABSENT, "warmup_min_lr", "a fraction", id="a ratio"
        ),
        pytest.param(COSINE % '"slope": 1', SIGNATURES, "", "", id="the installed class has it"),
        pytest.param(
            ADAMW % '"weightdecay": 1',
            ABSENT,
            "weightdecay",
            "weight_decay",
            id="an optimizer in the table",
        ),
        pytest.param(
            ADAMW % '"weightdecay": 1', SIGNATURES, "weightdecay", "`weight_decay`", id="misspelt"
        ),
        pytest.param(ADAMW % '"max_grad_norm": 1', SIGNATURES, "", "", id="reported elsewhere"),
        pytest.param(ADAMW % '"foo": 1', SIGNATURES, "foo", "accepts `lr`", id="like nothing"),
    ],
)
def test_parameters_of_optimizer_and_scheduler(
    text: str, verdict: Any, key: str, hint: str
) -> None:
    found = judge(
        ds_config_invalid_key.keys_are_known,
        ds_config=config(text),
        deep_speed_install=NOW,
        config_verdict=verdict,
    ).bad
    assert [str(one.evidence["key"]).rpartition(".")[2] for one in found] == [key] * bool(key)
    assert not key or hint in found[0].hint


def test_removed_elasticity_asks_for_the_batch_size_that_it_set() -> None:
    text = config('{"elasticity": {"enabled": true}}')
    (found,) = judge(
        ds_config_invalid_key.keys_are_known, ds_config=text, deep_speed_install=NOW
    ).findings
    assert "train_micro_batch_size_per_gpu" in found.hint


@pytest.mark.parametrize(
    ("version", "text", "status", "words"),
    [
        ("0.14.3", '{"compile": {"enabled": true, "backend": "inductor"}}', "ok", ""),
        ("0.14.4", '{"compile": {"enabled": true}}', "ok", ""),
        ("0.16.6", '{"compile": {"enabled": true}}', "fail", "is not a key of `compile`"),
        ("0.12.3", '{"zero_optimization": {"offload_optimizer": {"ratio": 0.5}}}', "ok", ""),
        (
            "0.12.2",
            '{"zero_optimization": {"offload_optimizer": {"ratio": 0.5}}}',
            "fail",
            "; 0.12.3 added it",
        ),
        ("0.17.0", '{"fp16": {"hysteresys": 2}}', "warn", "the closest is `hysteresis`"),
        ("0.17.1", '{"fp16": {"hysteresys": 2}}', "fail", "the closest is `hysteresis`"),
        ("0.17.4", '{"zero_optimization": {"zenflow": {}}}', "fail", "; 0.17.5 added it"),
        ("0.17.1", '{"torch_autocast": {}}', "warn", "; 0.17.2 added it"),
        ("0.16.4", '{"seq_parallel_comm_data_type": "fp32"}', "ok", ""),
        ("0.16.5", '{"seq_parallel_comm_data_type": "fp32"}', "warn", "the closest is"),
        ("0.17.1", '{"bfloat16": {"enable": true}}', "fail", "the closest is `enabled`"),
        ("0.17.1", '{"bf16": {}, "bfloat16": {"enable": true}}', "ok", ""),
        ("0.3.13", '{"zero_optimization": {"cpu_offload_params": true}}', "ok", ""),
        ("0.7.0", '{"zero_optimization": {"cpu_offload_params": true}}', "fail", "the closest is"),
    ],
    ids=[
        "the first model of compile", "no model of compile", "the second model of compile",
        "a key in its first release", "a key before its first release",
        "fp16 without a model", "fp16 with a model", "a section before its first release",
        "a top-level key before its first release", "a name until it was changed",
        "a name after it was changed", "the older name of bf16", "an older name that is not read",
        "a key of before the models", "the same in the first release with models",
    ],
)  # fmt: skip
def test_each_release_has_its_keys(version: str, text: str, status: str, words: str) -> None:
    found = judge(
        ds_config_invalid_key.keys_are_known,
        ds_config=config(text),
        deep_speed_install=DeepSpeedInstall(version=version),
        config_verdict=ABSENT,
    )
    assert found.status == status
    assert words in (found.findings[0].message if status != "ok" else "")


@pytest.mark.parametrize(
    ("framework", "text", "status"),
    [
        pytest.param("hf", "{}", "fail", id="transformers needs the section"),
        pytest.param("accelerate", '{"bf16": {}}', "fail", id="accelerate needs it"),
        pytest.param("hf", '{"zero_optimization": {}}', "ok", id="it may be empty"),
        pytest.param("native", "{}", "ok", id="DeepSpeed itself does not need it"),
        pytest.param("", "{}", "ok", id="nobody knows who reads the file"),
        pytest.param("", '{"train_batch_size": "auto"}', "warn", id="something fills it in"),
        pytest.param("native", '{"train_batch_size": "auto"}', "ok", id="the script fills it in"),
        pytest.param(
            "",
            '{"train_batch_size": "auto", "zero_optimization": {}}',
            "ok",
            id="filled in, with it",
        ),
    ],
)
def test_accelerate_needs_the_section_of_zero(framework: str, text: str, status: str) -> None:
    found = judge(
        ds_config_invalid_key.keys_are_known,
        ds_config=config(text),
        deep_speed_install=NOW,
        config_verdict=ABSENT,
        run_needs=RunNeeds(framework=framework),
    )
    assert found.status == status
