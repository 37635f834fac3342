"""Rows of `ds-config-default-changed`: what is silent, and what speaks."""

from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall
from dsdoctor.testing import judge
from dsdoctor_checks.config import ds_config_default_changed
from tests.checks.config.rows import NOW, OLD, ZERO, config


@pytest.mark.parametrize(
    ("text", "deepspeed", "status"),
    [
        ('{"gradient_clipping": 1.0}', NOW, "ok"),
        ("{'a': 1}", NOW, "ok"),
        ("{'a': 1}", OLD, "ok"),
        (ZERO % (2, '"compute_grad_norm": false'), NOW, "fail"),
        (ZERO % (2, '"compute_grad_norm": false'), OLD, "ok"),
        (ZERO % (3, '"compute_grad_norm": false'), NOW, "ok"),
        (ZERO % (2, '"offload_optimizer": {"device": "cpu"}'), NOW, "ok"),
    ],
)
def test_default_changed(text: str, deepspeed: DeepSpeedInstall, status: str) -> None:
    check = ds_config_default_changed.defaults_are_as_before
    assert (
        judge(check, ds_config=config(text), deep_speed_install=deepspeed).statuses
        == status.split()
    )
