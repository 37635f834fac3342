"""Rows of `persistence-mode-off`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import persistence_mode_off

LIMITS = persistence_mode_off.PersistenceLimits()


def node(count: int, brand: str, *, on: bool | None, screen: bool = False) -> Gpus:
    return Gpus(
        gpus=tuple(
            Gpu(index=i, brand=brand, persistence_mode=on, display_active=screen)
            for i in range(count)
        )
    )


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(node(8, "NVIDIA", on=True), "ok", id="eight GPUs with persistence mode on"),
        pytest.param(
            node(8, "NVIDIA", on=None), "skip", id="eight GPUs whose persistence mode is unknown"
        ),
        pytest.param(
            node(2, "NVIDIA", on=False), "ok", id="two GPUs load quickly without persistence mode"
        ),
        pytest.param(
            node(4, "GeForce", on=False), "ok", id="a workstation with four GeForce cards"
        ),
        pytest.param(
            node(4, "NVIDIA", on=False, screen=True), "ok", id="a screen keeps the driver loaded"
        ),
        pytest.param(
            node(8, "NVIDIA", on=False), "warn", id="an eight-GPU server with persistence mode off"
        ),
        pytest.param(
            node(4, "Tesla", on=False), "warn", id="four Tesla cards with persistence mode off"
        ),
    ],
)
def test_rows(fact: Gpus, expected: str) -> None:
    check = persistence_mode_off.driver_stays_loaded
    assert judge(check, gpus=fact).status == expected
