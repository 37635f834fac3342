"""Rows of `ds-config-unknown-scheduler`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_unknown_scheduler
from tests.checks.config.rows import NOW, config


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        pytest.param("WarmupLR", "", id="a scheduler of DeepSpeed"),
        pytest.param("CosineAnnealingLR", "", id="a scheduler of torch"),
        pytest.param("auto", "", id="a scheduler that the Trainer chooses"),
        pytest.param("WarmupCosine", "WarmupCosineLR", id="a name cut short"),
    ],
)
def test_unknown_scheduler(name: str, meant: str) -> None:
    text = config('{"scheduler": {"type": "%s"}}' % name)  # noqa: UP031
    judged = judge(
        ds_config_unknown_scheduler.scheduler_exists, ds_config=text, deep_speed_install=NOW
    )
    assert judged.statuses == ["fail" if meant else "ok"]
    assert not meant or meant in judged.findings[0].hint
