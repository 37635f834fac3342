"""Rows of `ds-config-unknown-optimizer`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_unknown_optimizer
from tests.checks.config.rows import ABSENT, NOW, OLD, config


@pytest.mark.parametrize(
    ("name", "deepspeed", "meant"),
    [
        pytest.param("adamw", NOW, "", id="DeepSpeed's own AdamW in small letters"),
        pytest.param("SGD", NOW, "", id="SGD of torch"),
        pytest.param("OneBitAdam", OLD, "", id="1-bit Adam in a release that has it"),
        pytest.param(
            "Brandnew",
            DeepSpeedInstall(version="0.30.0"),
            "",
            id="a new name in a release newer than the table",
        ),
        pytest.param("AdamV", NOW, "Adam", id="one wrong letter"),
        pytest.param("sgd", NOW, "SGD", id="SGD of torch in small letters"),
        pytest.param("OneBitAdam", NOW, "AdamW", id="1-bit Adam in a release without it"),
        pytest.param(
            "DeepSpeedCPUAdam",
            ABSENT,
            "AdamW",
            id="the class of the CPU optimizer, and the release is unknown",
        ),
        pytest.param("FusedAdam", NOW, "AdamW", id="the class of the fused optimizer"),
    ],
)
def test_unknown_optimizer(name: str, deepspeed: Any, meant: str) -> None:
    text = config('{"optimizer": {"type": "%s"}}' % name)  # noqa: UP031  # braces in JSON
    judged = judge(
        ds_config_unknown_optimizer.optimizer_exists, ds_config=text, deep_speed_install=deepspeed
    )
    assert judged.statuses == ["fail" if meant else "ok"]
    assert not meant or meant in judged.findings[0].hint


@pytest.mark.parametrize("name", ["AdaFoo", "Adan", "AdamW8bit"])
def test_a_name_that_the_script_may_know_is_not_judged(name: str) -> None:
    text = config('{"optimizer": {"type": "%s"}}' % name)  # noqa: UP031  # braces in JSON
    assert judge(
        ds_config_unknown_optimizer.optimizer_exists, ds_config=text, deep_speed_install=NOW
    ).statuses == ["skip"]


def test_a_class_that_the_script_imports_is_not_judged() -> None:
    text = config('{"optimizer": {"type": "bitsandbytes.optim.AdamW8bit"}}')
    assert judge(
        ds_config_unknown_optimizer.optimizer_exists, ds_config=text, deep_speed_install=NOW
    ).statuses == ["skip"]
