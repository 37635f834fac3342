"""Rows for every condition of the config family: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest
from dsdoctor_checks.config import (
    ds_config_auto_values,
    ds_config_batch_mismatch,
    ds_config_default_changed,
    ds_config_ignored_setting,
    ds_config_invalid_key,
    ds_config_unknown_optimizer,
    ds_config_unknown_scheduler,
    ds_config_unreadable,
    ds_config_unsupported_combination,
    ds_config_wrong_type,
)

from dsdoctor.api import (
    DeepSpeedInstall,
    DsConfig,
    Finding,
    Gpu,
    Gpus,
    Missing,
    Package,
    Packages,
    RunNeeds,
    Status,
    Why,
)
from dsdoctor.probes.config import parse_config
from dsdoctor.probes.launch import parse_command, parse_hostfile

ABSENT = Missing(why=Why.NOT_ASKED, detail="not asked")
NOW = DeepSpeedInstall(version="0.19.8")
OLD = DeepSpeedInstall(version="0.16.2")
HF = Packages(packages={"transformers": Package(name="transformers", version="5.23.0")})
BARE = Packages()


def config(text: str) -> DsConfig:
    return parse_config(text, "ds.json")


def bad(findings: Any) -> list[Finding]:
    return [found for found in findings if found.status in {Status.FAIL, Status.WARN}]


def statuses(findings: Any) -> str:
    return " ".join(found.status.value for found in findings)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"a": 1, // remark\n "b": [1, 2,],}', ""),
        ('{"a": 1,\n"a": 2}', "lines 1 and 2"),
        ('{"fp16": {"enabled": true,\n"enabled": false}}', "`fp16.enabled` stands on lines 1 and 2"),
        ('{\n"a": {"b": 1\n', "line 2 column 6"),
        ('{"a": None}', "`None}`"),
        ('{"a" 1}', "line 1 column 6"),
        ("", "empty"),
        ("[1]", "list"),
    ],
)
def test_unreadable(text: str, words: str) -> None:
    found = list(ds_config_unreadable.config_can_be_read.function(config(text)))
    assert bool(found) == bool(words)
    assert not words or words in found[0].message


def test_unreadable_file_that_is_not_there() -> None:
    gone = DsConfig(path="ds_confg.json", error="the file does not exist")
    (found,) = ds_config_unreadable.config_can_be_read.function(gone)
    assert "ds_confg.json" in found.message
    assert "a file that is there" in found.hint


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
        ('{"tensorboard": {"output_dir": "logs"}}', NOW, "fail", "`output_path`"),
    ],
)
def test_invalid_key(text: str, deepspeed: Any, status: str, words: str) -> None:
    found = list(ds_config_invalid_key.keys_are_known.function(config(text), deepspeed))
    assert statuses(found) == status
    assert not words or words in found[0].message


@pytest.mark.parametrize(
    ("text", "argv", "gpus", "status"),
    [
        ('{"train_micro_batch_size_per_gpu": 4}', "", 8, "ok"),
        ('{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4}', "", 8, "ok"),
        (
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
            ' "gradient_accumulation_steps": 2}',
            "deepspeed --num_gpus 4 t.py",
            8,
            "ok",
        ),
        (
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
            ' "gradient_accumulation_steps": 2}',
            "deepspeed --num_gpus 2 t.py",
            8,
            "fail",
        ),
        (
            '{"train_batch_size": 32, "train_micro_batch_size_per_gpu": 4,'
            ' "gradient_accumulation_steps": 2, "sequence_parallel_size": 2}',
            "torchrun --nproc_per_node 8 t.py",
            8,
            "ok",
        ),
        ('{"train_batch_size": 7, "train_micro_batch_size_per_gpu": 2}', "", None, "fail"),
        ('{"train_batch_size": 1}', "deepspeed --include localhost:0,1 t.py", 8, "fail"),
        ('{"train_batch_size": 6}', "", 4, "warn"),
        ('{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1}', "", None, "skip"),
        (  # made for two nodes like this one
            '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,'
            ' "gradient_accumulation_steps": 1}',
            "",
            8,
            "ok",
        ),
        ('{"train_batch_size": "auto"}', "", 8, "skip"),
        ("{}", "", 8, "fail"),
        ('{"train_micro_batch_size_per_gpu": -1}', "", 8, "fail"),
        ('{"train_batch_size": "8"}', "", 8, ""),
    ],
)
def test_batch_mismatch(text: str, argv: str, gpus: int | None, status: str) -> None:
    seen = Gpus(gpus=tuple(Gpu(index=number) for number in range(gpus))) if gpus else ABSENT
    command = parse_command(argv.split()) if argv else ABSENT
    check = ds_config_batch_mismatch.batches_fit.function
    found = check(config(text), RunNeeds(), command, ABSENT, ABSENT, seen)
    assert statuses(found) == status


def test_batch_mismatch_counts_hostfile_and_gpus_option() -> None:
    text = '{"train_batch_size": 16, "train_micro_batch_size_per_gpu": 1,'
    text += ' "gradient_accumulation_steps": 1}'
    check = ds_config_batch_mismatch.batches_fit.function
    hosts = parse_hostfile("a slots=8\nb slots=8\n", "hosts")
    assert not bad(check(config(text), RunNeeds(), ABSENT, hosts, ABSENT, ABSENT))
    chosen = RunNeeds(gpus=("0", "1"))
    (found,) = bad(check(config(text), chosen, ABSENT, ABSENT, ABSENT, ABSENT))
    assert found.status is Status.FAIL
    assert found.evidence["product"] == 2
    assert "(line 1) is 16, but micro batch 1 * accumulation 1 * 2 ranks is 2" in found.message


@pytest.mark.parametrize(
    ("text", "packages", "argv", "status"),
    [
        ('{"train_batch_size": 8}', BARE, "", ""),
        ('{"train_batch_size": "auto"}', HF, "", "ok"),
        ('{"train_batch_size": "auto"}', BARE, "", "fail"),
        ('{"optimizer": {"params": {"lr": "auto"}}}', BARE, "", "fail"),
        ('{"fp16": {"enabled": "auto"}}', BARE, "", "warn"),
        ('{"fp16": {"enabled": "auto"}}', ABSENT, "", "skip"),
        ('{"train_batch_size": "auto"}', HF, "deepspeed t.py --deepspeed ds.json", "ok"),
        ('{"train_batch_size": "auto"}', HF, "deepspeed t.py --deepspeed_config ds.json", "warn"),
    ],
)
def test_auto_values(text: str, packages: Any, argv: str, status: str) -> None:
    command = parse_command(argv.split()) if argv else ABSENT
    check = ds_config_auto_values.auto_is_filled_in.function
    assert statuses(check(config(text), packages, command)) == status


ZERO = '{"zero_optimization": {"stage": %s, %s}}'


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
            '{"prescale_gradients": true,'
            ' "zero_optimization": {"stage": 2, "reduce_scatter": false}}',
            "",
        ),
        ('{"gradient_predivide_factor": 2.0, "zero_optimization": {"stage": 3}}', "is 2"),
        (ZERO % (2, '"cpu_offload": true, "offload_optimizer": {}'), "twice"),
        ('{"bf16": {"bf16_master_weights_and_grads": true}}', "stage is 0"),
    ],
)
def test_unsupported_combination(text: str, words: str) -> None:
    check = ds_config_unsupported_combination.settings_agree.function
    found = list(check(config(text)))
    assert len(found) == bool(words)
    assert not words or words in found[0].message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ZERO % (3, '"offload_param": {"device": "cpu"}'), ""),
        (ZERO % (2, '"offload_param": {"device": "none"}'), ""),
        (ZERO % (2, '"offload_param": {"device": "cpu"}'), "`zero_optimization.offload_param`"),
        (ZERO % (1, '"offload_optimizer": {"device": "nvme"}'), "the stage is 1"),
        ('{"aio": {"intra_op_parallelism": 4}}', ""),
        ('{"aio": {"thread_count": 4}}', "0.16.4"),
        ('{"aio": {"que_depth": 4}}', "no such key"),
        ('{"fp16": {"enabled": true, "loss_scale": 0, "initial_scale_power": 16}}', ""),
        ('{"fp16": {"enabled": true, "loss_scale": 128, "hysteresis": 2}}', "fixed at 128"),
        ('{"fp16": {"enabled": false, "loss_scale": 128, "hysteresis": 2}}', ""),
        ('{"optimizer": {"type": "Adam", "param": {"lr": 1}}}', "`params`"),
    ],
)
def test_ignored_setting(text: str, words: str) -> None:
    found = list(ds_config_ignored_setting.settings_have_effect.function(config(text), NOW))
    assert statuses(found) == ("warn" if words else "")
    assert not words or words in found[0].message


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
    ],
)
def test_wrong_type(text: str, words: str) -> None:
    found = list(ds_config_wrong_type.values_are_of_their_kind.function(config(text)))
    assert len(found) == bool(words), found
    assert not words or words in found[0].message


@pytest.mark.parametrize(
    ("name", "deepspeed", "meant"),
    [
        ("adamw", NOW, ""),
        ("SGD", NOW, ""),
        ("OneBitAdam", OLD, ""),
        ("Brandnew", DeepSpeedInstall(version="0.30.0"), ""),
        ("AdamV", NOW, "Adam"),
        ("sgd", NOW, "SGD"),
        ("OneBitAdam", NOW, "AdamW"),
        ("AdaFoo", ABSENT, "Ada"),
    ],
)
def test_unknown_optimizer(name: str, deepspeed: Any, meant: str) -> None:
    text = config('{"optimizer": {"type": "%s"}}' % name)  # noqa: UP031  # braces in JSON
    found = list(ds_config_unknown_optimizer.optimizer_exists.function(text, deepspeed))
    assert statuses(found) == ("fail" if meant else "")
    assert not meant or meant in found[0].hint


@pytest.mark.parametrize(
    ("name", "meant"),
    [("WarmupLR", ""), ("CosineAnnealingLR", ""), ("auto", ""), ("WarmupCosine", "WarmupCosineLR")],
)
def test_unknown_scheduler(name: str, meant: str) -> None:
    text = config('{"scheduler": {"type": "%s"}}' % name)  # noqa: UP031
    found = list(ds_config_unknown_scheduler.scheduler_exists.function(text, NOW))
    assert statuses(found) == ("fail" if meant else "")
    assert not meant or meant in found[0].hint


@pytest.mark.parametrize(
    ("text", "deepspeed", "status"),
    [
        ('{"gradient_clipping": 1.0}', NOW, ""),
        ("{'a': 1}", NOW, "ok"),
        ("{'a': 1}", OLD, ""),
        (ZERO % (2, '"compute_grad_norm": false'), NOW, "fail"),
        (ZERO % (2, '"compute_grad_norm": false'), OLD, ""),
        (ZERO % (3, '"compute_grad_norm": false'), NOW, "ok"),
        (ZERO % (2, '"offload_optimizer": {"device": "cpu"}'), NOW, "ok"),
    ],
)
def test_default_changed(text: str, deepspeed: DeepSpeedInstall, status: str) -> None:
    check = ds_config_default_changed.defaults_are_as_before.function
    assert statuses(check(config(text), deepspeed)) == status
