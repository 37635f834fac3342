"""Rows of `ecc-uncorrectable`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import ecc_uncorrectable


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        (Gpu(index=0, health=GpuHealth(ecc_volatile_uncorrected=0)), "ok"),
        (Gpu(index=0, health=GpuHealth()), "skip"),
        (
            Gpu(
                index=0,
                health=GpuHealth(
                    ecc_volatile_uncorrected=0,
                    ecc_aggregate_uncorrected=9,
                    sram_aggregate_uncorrected=4,
                ),
            ),
            "ok",
        ),
        (Gpu(index=0, health=GpuHealth(ecc_volatile_uncorrected=1)), "fail"),
        (Gpu(index=0, health=GpuHealth(sram_aggregate_uncorrected=5)), "fail"),
        (Gpu(index=0, health=GpuHealth(sram_threshold_exceeded=True)), "fail"),
    ],
)
def test_rows(fact: Gpu, expected: str) -> None:
    assert judge(ecc_uncorrectable.memory_is_sound, gpus=Gpus(gpus=(fact,))).status == expected
