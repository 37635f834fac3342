"""Rows of `ecc-uncorrectable`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import ecc_uncorrectable


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            Gpu(index=0, health=GpuHealth(ecc_volatile_uncorrected=0)),
            "ok",
            id="no uncorrected error since the driver was loaded",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth()), "skip", id="the GPU does not report ECC errors"
        ),
        pytest.param(
            Gpu(
                index=0,
                health=GpuHealth(
                    ecc_volatile_uncorrected=0,
                    ecc_aggregate_uncorrected=9,
                    sram_aggregate_uncorrected=4,
                ),
            ),
            "ok",
            id="a few uncorrected errors, all of them from before the driver was loaded",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(ecc_volatile_uncorrected=1)),
            "fail",
            id="one uncorrected error since the driver was loaded",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(sram_aggregate_uncorrected=5)),
            "fail",
            id="five uncorrected SRAM errors over the life of the GPU",
        ),
        pytest.param(
            Gpu(index=0, health=GpuHealth(sram_threshold_exceeded=True)),
            "fail",
            id="the driver says that SRAM errors exceed the threshold",
        ),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    found = judge(ecc_uncorrectable.memory_is_sound, gpus=Gpus(gpus=(fact,)))
    assert found.status == expected
    assert not any("has 0 " in one.message for one in found.bad)
