"""Rows of `fp16-loss-unscaled`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.recommend import releases
from dsdoctor.testing import assert_warn, judge
from dsdoctor_checks.config import fp16_loss_unscaled
from tests.checks.config.rows import NOW, OLD, config

PLAIN = '{"fp16": {"enabled": true}}'


@pytest.mark.parametrize(
    ("text", "deepspeed", "status"),
    [
        pytest.param(PLAIN, NOW, "warn", id="fp16 without ZeRO in a current release"),
        pytest.param(
            '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 0}}',
            NOW,
            "warn",
            id="fp16 with stage 0",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "loss_scale": 1024}}', NOW, "warn", id="a fixed loss scale"
        ),
        pytest.param(
            '{"fp16": {"enabled": true}, "zero_optimization": {"stage": 1}}',
            NOW,
            "ok",
            id="fp16 with stage 1",
        ),
        pytest.param(
            '{"fp16": {"enabled": true, "loss_scale": 1}}', NOW, "ok", id="a loss scale of 1"
        ),
        pytest.param('{"fp16": {"enabled": "auto"}}', NOW, "ok", id="a trainer decides on fp16"),
        pytest.param(
            '{"fp16": {"enabled": true}, "zero_optimization": {"stage": "auto"}}',
            NOW,
            "ok",
            id="a trainer decides on the stage",
        ),
        pytest.param('{"bf16": {"enabled": true}}', NOW, "ok", id="bf16 without ZeRO"),
        pytest.param(PLAIN, OLD, "ok", id="fp16 without ZeRO in an older release"),
        pytest.param(
            PLAIN, DeepSpeedInstall(version="0.18.2"), "ok", id="the last release that scales"
        ),
        pytest.param(
            PLAIN, DeepSpeedInstall(version="0.18.3"), "warn", id="the first that does not"
        ),
        pytest.param(
            PLAIN, DeepSpeedInstall(version="0.20.0"), "ok", id="a release that nobody has read"
        ),
    ],
)
def test_loss_unscaled(text: str, deepspeed: DeepSpeedInstall, status: str) -> None:
    check = fp16_loss_unscaled.the_loss_is_scaled
    judged = judge(check, ds_config=config(text), deep_speed_install=deepspeed)
    assert judged.statuses == [status]


def test_it_says_where_and_in_which_release() -> None:
    check = fp16_loss_unscaled.the_loss_is_scaled
    judged = judge(check, ds_config=config(PLAIN), deep_speed_install=NOW)
    assert_warn(judged, "(line 1) is true without ZeRO, where DeepSpeed 0.19.8")


def test_recommend_knows_the_same_releases() -> None:
    check = fp16_loss_unscaled.the_loss_is_scaled
    later = releases.UNSCALED_LOSS_READ.release
    bounds = {
        str(releases.UNSCALED_LOSS): "warn",
        str(releases.UNSCALED_LOSS_READ): "warn",
        ".".join(map(str, (*later[:-1], later[-1] + 1))): "ok",
    }
    for release, status in bounds.items():
        install = DeepSpeedInstall(version=release)
        judged = judge(check, ds_config=config(PLAIN), deep_speed_install=install)
        assert (release, judged.statuses) == (release, [status])
