"""Rows of `power-capped`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import power_capped


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=700000, power_limit_default_mw=700000)),
            "ok",
            id="the limit is the default of 700 W",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=None, power_limit_default_mw=None)),
            "skip",
            id="the GPU does not report power limits",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=450000, power_limit_default_mw=350000)),
            "ok",
            id="the limit was raised above the default",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(power_limit_mw=300000, power_limit_default_mw=700000)),
            "warn",
            id="the limit was lowered from 700 W to 300 W",
        ),
        pytest.param(
            Gpu(
                index=0,
                name="NVIDIA GeForce RTX 4060 Laptop GPU",
                health=GpuHealth(power_limit_mw=35000, power_limit_default_mw=80000),
            ),
            "ok",
            id="a laptop lowers the limit of its GPU by design",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(power_capped.power_is_free, gpus=Gpus(gpus=(fact,))).status == expected


def card(
    index: int, in_force: int, was_set: int | None, name: str = "NVIDIA GeForce RTX 3090"
) -> Gpu:
    """A card with a default of 350 W."""
    health = GpuHealth(
        power_limit_mw=in_force * 1000,
        power_limit_set_mw=None if was_set is None else was_set * 1000,
        power_limit_default_mw=350_000,
    )
    return Gpu(index=index, name=name, health=health)


@pytest.mark.parametrize(
    ("cards", "capped"),
    [
        pytest.param([card(0, 290, 290), card(1, 290, 290)], [], id="both cards were set to 290 W"),
        pytest.param([card(0, 250, 250)], [], id="the only card was set to 250 W"),
        pytest.param(
            [card(0, 290, 290), card(1, 250, 250, "NVIDIA GeForce RTX 3090 Ti")],
            [],
            id="two models, each with a limit of its own",
        ),
        pytest.param(
            [card(0, 350, 350), card(1, 250, 250)], [1], id="one of two cards was set to 250 W"
        ),
        pytest.param(
            [card(0, 290, 290), card(1, 250, 250)], [0, 1], id="two cards with different limits"
        ),
        pytest.param([card(0, 300, 350)], [0], id="the hardware allows less than was set"),
        pytest.param([card(0, 290, None)], [0], id="a snapshot that does not say what was set"),
        pytest.param(
            [card(0, 250, 250, "NVIDIA A40"), card(1, 250, 250, "NVIDIA A40")],
            [0, 1],
            id="data center cards, which a management controller can limit too",
        ),
    ],
)
def test_a_limit_that_was_set_on_purpose(cards: list[Gpu], capped: list[int]) -> None:
    found = judge(power_capped.power_is_free, gpus=Gpus(gpus=tuple(cards)))
    assert [one.evidence["gpu"] for one in found.bad] == capped
