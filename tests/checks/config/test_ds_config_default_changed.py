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
        pytest.param(
            '{"gradient_clipping": 1.0}', NOW, "ok", id="a config without the changed setting"
        ),
        pytest.param("{'a': 1}", NOW, "ok", id="a config that is not JSON, for a current release"),
        pytest.param("{'a': 1}", OLD, "ok", id="a config that is not JSON, for an older release"),
        pytest.param(
            ZERO % (2, '"compute_grad_norm": false'),
            NOW,
            "fail",
            id="ZeRO-2 without gradient norms fails in a current release",
        ),
        pytest.param(
            ZERO % (2, '"compute_grad_norm": false'),
            OLD,
            "ok",
            id="ZeRO-2 without gradient norms in an older release",
        ),
        pytest.param(
            ZERO % (3, '"compute_grad_norm": false'), NOW, "ok", id="ZeRO-3 without gradient norms"
        ),
        pytest.param(
            ZERO % (2, '"offload_optimizer": {"device": "cpu"}'),
            NOW,
            "ok",
            id="ZeRO-2 with offload and the default",
        ),
    ],
)
def test_default_changed(text: str, deepspeed: DeepSpeedInstall, status: str) -> None:
    check = ds_config_default_changed.defaults_are_as_before
    assert (
        judge(check, ds_config=config(text), deep_speed_install=deepspeed).statuses
        == status.split()
    )
