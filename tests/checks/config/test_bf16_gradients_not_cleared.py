"""Rows of `bf16-gradients-not-cleared`: what is silent, and what speaks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import assert_skip, assert_warn, judge
from dsdoctor_checks.config import bf16_gradients_not_cleared
from tests.checks.config.rows import NOW, config

BAD = DeepSpeedInstall(version="0.18.5")


def text(optimizer: str | dict[str, Any] | None = "SGD", stage: Any = 0, **more: Any) -> str:
    """A config in bf16."""
    named = {"type": optimizer} if isinstance(optimizer, str) else optimizer
    block = {} if named is None else {"optimizer": named}
    zero = {"zero_optimization": {"stage": stage}}
    return json.dumps({"bf16": {"enabled": True}, **zero, **block, **more})


TORCH_ADAM = {"type": "AdamW", "params": {"torch_adam": True}}


@pytest.mark.parametrize(
    ("config_text", "release", "status"),
    [
        pytest.param(text(), "0.18.5", "warn", id="SGD without ZeRO"),
        pytest.param(text("Lamb"), "0.17.6", "warn", id="the first such release"),
        pytest.param(text("Lion"), "0.18.3", "warn", id="a release that does not scale the loss"),
        pytest.param(text(TORCH_ADAM), "0.18.5", "warn", id="torch's AdamW"),
        pytest.param(
            text(data_types={"grad_accum_dtype": "bf16"}), "0.18.5", "warn", id="summed in bf16"
        ),
        pytest.param(
            '{"bf16": {"enabled": true}, "optimizer": {"type": "SGD"}}', "0.18.5", "warn",
            id="no ZeRO section",
        ),
        pytest.param(text(), "0.17.5", "ok", id="the last release with gradients of its own"),
        pytest.param(text(), "0.18.6", "ok", id="the first release that clears them"),
        pytest.param(text(), NOW.version, "ok", id="a current release"),
        pytest.param(text("AdamW"), "0.18.5", "ok", id="DeepSpeed's FusedAdam"),
        pytest.param(text("OneBitAdam"), "0.18.5", "ok", id="1-bit Adam"),
        pytest.param(text(stage=1), "0.18.5", "ok", id="ZeRO-1"),
        pytest.param(text(stage="auto"), "0.18.5", "ok", id="a trainer decides on the stage"),
        pytest.param(
            text(data_types={"grad_accum_dtype": "fp32"}), "0.18.5", "ok",
            id="gradients of their own in fp32",
        ),
        pytest.param(
            '{"fp16": {"enabled": true}, "optimizer": {"type": "SGD"}}', "0.18.5", "ok", id="fp16"
        ),
        pytest.param('{"optimizer": {"type": "SGD"}}', "0.18.5", "ok", id="fp32"),
    ],
)  # fmt: skip
def test_gradients_cleared(config_text: str, release: str | None, status: str) -> None:
    check = bf16_gradients_not_cleared.gradients_are_cleared
    deepspeed = DeepSpeedInstall(version=release)
    judged = judge(check, ds_config=config(config_text), deep_speed_install=deepspeed)
    assert judged.statuses == [status]


def test_an_optimizer_of_the_script_is_not_known() -> None:
    check = bf16_gradients_not_cleared.gradients_are_cleared
    judged = judge(check, ds_config=config(text(None)), deep_speed_install=BAD)
    assert_skip(judged, "the config selects no optimizer")


@pytest.mark.parametrize(("release", "divided"), [("0.18.2", False), ("0.18.3", True)])
def test_it_says_where_and_what_happens(release: str, *, divided: bool) -> None:
    check = bf16_gradients_not_cleared.gradients_are_cleared
    deepspeed = DeepSpeedInstall(version=release)
    judged = judge(check, ds_config=config(text()), deep_speed_install=deepspeed)
    assert_warn(judged, f"DeepSpeed {release} does not clear the gradients of `SGD`")
    (finding,) = judged.findings
    assert ("divided by 65536" in (finding.effect or "")) == divided
