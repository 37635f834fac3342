"""Rows of `channel-repair-pending`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import channel_repair_pending


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(channel_repair_pending=False, tpc_repair_pending=False)),
            "ok",
            id="neither a channel nor a TPC waits for a repair",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth()), "skip", id="the driver does not report repairs"
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(tpc_repair_pending=True)),
            "warn",
            id="a TPC repair waits for a reset",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert (
        judge(channel_repair_pending.no_repair_is_pending, gpus=Gpus(gpus=(fact,))).status
        == expected
    )
