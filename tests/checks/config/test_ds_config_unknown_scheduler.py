"""Rows of `ds-config-unknown-scheduler`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor_checks.config import ds_config_unknown_scheduler
from tests.checks.config.rows import NOW, config, statuses


@pytest.mark.parametrize(
    ("name", "meant"),
    [("WarmupLR", ""), ("CosineAnnealingLR", ""), ("auto", ""), ("WarmupCosine", "WarmupCosineLR")],
)
def test_unknown_scheduler(name: str, meant: str) -> None:
    text = config('{"scheduler": {"type": "%s"}}' % name)  # noqa: UP031
    found = list(ds_config_unknown_scheduler.scheduler_exists.function(text, NOW))
    assert statuses(found) == ("fail" if meant else "")
    assert not meant or meant in found[0].hint
