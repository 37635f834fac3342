"""Rows of `ds-config-wrong-type`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_wrong_type
from tests.checks.config.rows import NOW, OLD, config


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param(
            '{"train_batch_size": 8, "gradient_clipping": 1.0, "steps_per_print": 1e5}',
            "",
            id="numbers, one of them with an exponent",
        ),
        pytest.param(
            '{"train_batch_size": "auto", "gradient_clipping": "auto"}',
            "",
            id="auto where a number would be",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adafactor", "params": {"eps": [1e-30, 1e-3]}}}',
            "",
            id="two epsilons of an optimizer that takes two",
        ),
        pytest.param(
            '{"optimizer": {"type": "Adafactor", "params": {"eps": 1e-8}}}',
            "a list of two numbers",
            id="one epsilon of an optimizer that takes two",
        ),
        pytest.param(
            '{"zero_optimization": true}', "", id="ZeRO as true, the form of the first releases"
        ),
        pytest.param(
            '{"zero_optimization": {"stage": "3", "reduce_bucket_size": 2e8}}',
            "",
            id="a stage in quotes and a bucket size with an exponent, which are converted",
        ),
        pytest.param(
            '{"fp16": {"enabled": "false"}}', "", id="a switch in quotes, which is converted"
        ),
        pytest.param(
            '{"train_micro_batch_size_per_gpu": "4"}', 'is "4"', id="a micro-batch in quotes"
        ),
        pytest.param('{"gradient_clipping": "1.0"}', "a number", id="a clipping value in quotes"),
        pytest.param(
            '{"wall_clock_breakdown": "false"}', "without quotes", id="a top-level switch in quotes"
        ),
        pytest.param('{"fp16": true}', "an object", id="a section as true"),
        pytest.param(
            '{"fp16": {"enabled": True,\n"loss_scale": 0}}',
            "`True,`",
            id="a value of Python instead of JSON",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 3, "offload_param": false}}',
            "is false, but it must be an object",
            id="offload switched off by a boolean",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 3, "offload_param": null, "overlap_comm": null}}',
            "",
            id="null where DeepSpeed accepts it",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "contiguous_gradients": null}}',
            "is null, but it must be `true` or `false`",
            id="null where a switch is expected",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "reduce_bucket_size": "5e8"}}',
            "an integer above 0",
            id="an exponent in quotes",
        ),
        pytest.param(
            '{"zero_optimization": {"offload_optimizer": {"device": "cpu", "pin_memory": "auto",'
            ' "ratio": 1.5}}}',
            "a number from 0 to 1",
            id="more than all of the optimizer offloaded",
        ),
        pytest.param('{"zero_optimization": {"stage": 4}}', "0, 1, 2 or 3", id="stage 4"),
        pytest.param(
            '{"zero_optimization": {"offload_param": {"device": "gpu"}}}',
            "`nvme`",
            id="parameters offloaded to the GPU",
        ),
        pytest.param(
            '{"zero_optimization": {"reduce_bucket_size": 1.5}}',
            "is 1.5",
            id="a bucket of one and a half elements",
        ),
        pytest.param(
            '{"optimizer": {"params": {"lr": "1e-5"}}}', "a number", id="a learning rate in quotes"
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "allgather_bucket_size": 5e8}}',
            "",
            id="an even bucket size for ZeRO-2",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 3, "allgather_bucket_size": 7}}',
            "",
            id="an odd bucket size, which ZeRO-3 does not read",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "allgather_bucket_size": 7}}',
            "even",
            id="an odd bucket size for ZeRO-2",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 10}}}',
            "",
            id="ten steps of warm-up",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": "auto"}}}',
            "",
            id="an auto warm-up",
        ),
        pytest.param(
            '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}',
            "above 0",
            id="no steps of warm-up",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "min_loss_scale": 1}}', "", id="a smallest loss scale of 1"
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "min_loss_scale": 0}}',
            "`fp16.min_loss_scale`",
            id="a smallest loss scale of 0",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "min_loss_scale": 0, "loss_scale": 128}}',
            "",
            id="a smallest loss scale of 0 beside a fixed scale, which ignores it",
        ),
        pytest.param(
            '{"fp16": {"enabled": "auto", "min_loss_scale": 0}}',
            "",
            id="a smallest loss scale of 0 while fp16 is auto",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "loss_scale_window": 0}}',
            "`fp16.loss_scale_window`",
            id="a loss scale window of 0 steps",
        ),
    ],
)
def test_wrong_type(text: str, words: str) -> None:
    found = judge(
        ds_config_wrong_type.values_are_of_their_kind,
        ds_config=config(text),
        deep_speed_install=NOW,
        run_needs=RunNeeds(),
    ).bad
    assert len(found) == bool(words), found
    assert not words or words in found[0].message


@pytest.mark.parametrize(("word", "status"), [("true", "warn"), ("false", "ok")])
def test_deepspeed_takes_a_boolean_for_a_norm(word: str, status: str) -> None:
    judged = judge(
        ds_config_wrong_type.values_are_of_their_kind,
        ds_config=config(f'{{"gradient_clipping": {word}}}'),
        deep_speed_install=NOW,
        run_needs=RunNeeds(),
    )
    assert judged.statuses == [status]


def test_older_releases_warm_up_in_no_steps() -> None:
    text = '{"scheduler": {"type": "WarmupLR", "params": {"warmup_num_steps": 0}}}'
    assert bad(text, deepspeed=OLD) == []
    assert len(bad(text, deepspeed=DeepSpeedInstall(version="0.19.3"))) == 1


def bad(
    text: str, framework: str = "native", deepspeed: DeepSpeedInstall = NOW
) -> list[tuple[str, str]]:
    """Status and message of each finding that is not `ok`."""
    judged = judge(
        ds_config_wrong_type.values_are_of_their_kind,
        ds_config=config(text),
        deep_speed_install=deepspeed,
        run_needs=RunNeeds(framework=framework),
    )
    return [(finding.status.value, finding.message) for finding in judged.bad]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            '{"communication_data_type": "fp64"}', "`fp16`, `bf16` or `fp32`", id="a type of sums"
        ),
        pytest.param('{"communication_data_type": "BF16"}', "", id="case does not matter there"),
        pytest.param(
            '{"communication_data_type": "bfp16"}', "`fp16`, `bf16` or `fp32`", id="an old word"
        ),
        pytest.param(
            '{"torch_autocast": {"dtype": "float8"}}', "`bf16`, `fp16` or `fp32`", id="autocast"
        ),
        pytest.param('{"torch_autocast": {"dtype": "torch.bfloat16"}}', "", id="torch's spelling"),
        pytest.param(
            '{"checkpoint": {"tag_validation": "maybe"}}', "`Warn`, `Ignore` or `Fail`", id="tags"
        ),
        pytest.param('{"checkpoint": {"tag_validation": "IGNORE"}}', "", id="tags in capitals"),
        pytest.param(
            '{"data_types": {"grad_accum_dtype": 16}}', "`fp32`, `bf16` or `fp16`", id="a number"
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "zenflow": {"select_strategy": "best"}}}',
            "`auto`, `step` or `epoch`",
            id="a strategy of ZenFlow",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 2, "zenflow": {"topk_ratio": 1.0}}}',
            "a number above 0 and below 1",
            id="all columns are not the most important ones",
        ),
        pytest.param(
            '{"zero_optimization": {"stage": 3, "leaf_module": ["MoE"]}}',
            "an object in braces",
            id="leaf modules as a list",
        ),
        pytest.param('{"fp16": {"enabled": false, "loss_scale": -1}}', "0 or more", id="a scale"),
    ],
)
def test_values_that_deepspeed_looks_up_or_bounds(text: str, expected: str) -> None:
    found = bad(text)
    assert [status for status, _ in found] == (["fail"] if expected else [])
    assert expected in "".join(message for _, message in found)


@pytest.mark.parametrize(
    ("framework", "statuses"),
    [
        pytest.param("hf", [], id="transformers passes the config to accelerate"),
        pytest.param("accelerate", [], id="accelerate sets it"),
        pytest.param("native", ["fail"], id="the script passes it to DeepSpeed"),
        pytest.param("lightning", ["fail"], id="Lightning passes it on"),
        pytest.param("", ["warn"], id="nobody knows who passes it on"),
    ],
)
def test_accelerate_sets_how_often_progress_is_printed(framework: str, statuses: list[str]) -> None:
    found = bad('{"steps_per_print": "inf"}', framework)
    assert [status for status, _ in found] == statuses


def test_a_switch_in_quotes_that_means_true_does_what_it_says() -> None:
    assert [status for status, _ in bad('{"dump_state": "yes"}')] == ["warn"]
    assert [status for status, _ in bad('{"dump_state": "no"}')] == ["fail"]


@pytest.mark.parametrize(
    ("word", "status"),
    [
        pytest.param("bfp16", [], id="the word of that time"),
        pytest.param("bf16", ["fail"], id="a word that came later"),
    ],
)
def test_releases_before_0_14_1_have_a_word_of_their_own(word: str, status: list[str]) -> None:
    found = bad(
        f'{{"communication_data_type": "{word}"}}', deepspeed=DeepSpeedInstall(version="0.14.0")
    )
    assert [one for one, _ in found] == status


def test_a_release_that_does_not_read_a_setting_does_not_reject_its_value() -> None:
    text = '{"torch_autocast": {"dtype": "float8"}, "fp16": {"hysteresis": 2.5}}'
    assert bad(text, deepspeed=DeepSpeedInstall(version="0.17.0")) == []
    assert len(bad(text, deepspeed=DeepSpeedInstall(version="0.17.2"))) == 2


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param('{"steps_per_print": 0}', "an integer above 0", id="every 0 steps"),
        pytest.param('{"steps_per_print": true}', "", id="every step"),
        pytest.param('{"gradient_predivide_factor": 0}', "other than 0", id="a division by 0"),
        pytest.param('{"gradient_predivide_factor": 2}', "", id="a factor"),
    ],
)
def test_numbers_that_deepspeed_divides_by(text: str, expected: str) -> None:
    found = bad(text)
    assert [status for status, _ in found] == (["fail"] if expected else [])
    assert expected in "".join(message for _, message in found)


@pytest.mark.parametrize(
    ("text", "version", "wrong"),
    [
        pytest.param('{"fp16": {"enabled": "false"}}', "0.16.9", True, id="before fp16's model"),
        pytest.param('{"fp16": {"enabled": "false"}}', "0.17.1", False, id="fp16 has a model"),
        pytest.param('{"torch_autocast": {"enabled": "false"}}', "0.19.8", True, id="autocast"),
        pytest.param('{"data_efficiency": {"enabled": "false"}}', "0.19.8", True, id="a section"),
        pytest.param('{"checkpoint": {"load_universal": "no"}}', "0.19.8", True, id="a word"),
        pytest.param('{"fp16": {"enabled": "auto"}}', "0.16.9", False, id="auto"),
        pytest.param(
            '{"wandb": {"enabled": "false"}}', "0.16.9", False, id="a section with a model"
        ),
    ],
)
def test_a_switch_in_quotes_is_on_where_nothing_reads_it(
    text: str, version: str, *, wrong: bool
) -> None:
    found = bad(text, deepspeed=DeepSpeedInstall(version=version))
    assert [status for status, _ in found] == ["fail"] * wrong


@pytest.mark.parametrize(
    ("betas", "wrong"),
    [
        pytest.param("[0.9, 0.999]", False, id="two numbers"),
        pytest.param('"auto"', False, id="filled in"),
        pytest.param('["auto"]', True, id="auto in a list"),
        pytest.param("[0.9]", True, id="one"),
        pytest.param("[0.9, 0.95, 0.99]", True, id="three"),
        pytest.param('[0.9, "0.999"]', True, id="quoted"),
        pytest.param('"0.9, 0.999"', True, id="a string"),
    ],
)
def test_betas_are_two_numbers(betas: str, *, wrong: bool) -> None:
    text = '{"optimizer": {"type": "%s", "params": {"betas": %s}}}'
    found = bad(text % ("AdamW", betas))
    assert [status for status, _ in found] == ["fail"] * wrong
    assert bad(text % ("Adan", "[0.9, 0.95, 0.99]")) == []


@pytest.mark.parametrize("switch", ["true", "false"])
def test_zero_as_a_boolean_stops_whatever_looks_for_keys_in_it(switch: str) -> None:
    text = f'{{"zero_optimization": {switch}}}'
    assert bad(text, "native") == []
    for framework in ("hf", "accelerate"):
        ((status, message),) = bad(text, framework)
        assert status == "fail"
        assert "an object in braces" in message


def test_a_config_that_something_fills_in_has_its_progress_set_too() -> None:
    text = '{"steps_per_print": "inf", "train_batch_size": %s}'
    assert [status for status, _ in bad(text % 8, "")] == ["warn"]
    assert bad(text % '"auto"', "") == []
