"""Rows of `ds-config-unknown-optimizer`: what is silent, and what speaks."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor_checks.config import ds_config_unknown_optimizer
from tests.checks.config.rows import ABSENT, NOW, OLD, config, statuses


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
        ("FusedAdam", NOW, "AdamW"),
    ],
)
def test_unknown_optimizer(name: str, deepspeed: Any, meant: str) -> None:
    text = config('{"optimizer": {"type": "%s"}}' % name)  # noqa: UP031  # braces in JSON
    found = list(ds_config_unknown_optimizer.optimizer_exists.function(text, deepspeed))
    assert statuses(found) == ("fail" if meant else "")
    assert not meant or meant in found[0].hint


def test_a_class_that_the_script_imports_is_not_judged() -> None:
    text = config('{"optimizer": {"type": "bitsandbytes.optim.AdamW8bit"}}')
    assert statuses(ds_config_unknown_optimizer.optimizer_exists.function(text, NOW)) == "skip"
