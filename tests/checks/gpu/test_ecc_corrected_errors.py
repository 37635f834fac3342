"""Rows of `ecc-corrected-errors`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, GpuHealth, Gpus
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import ecc_corrected_errors


@pytest.mark.parametrize(
    ("major", "health", "expected"),
    [
        pytest.param(
            9,
            GpuHealth(ecc_volatile_corrected=0, dram_aggregate_corrected=0),
            "ok",
            id="no error was corrected",
        ),
        pytest.param(
            8,
            GpuHealth(
                ecc_volatile_corrected=812,
                dram_aggregate_corrected=1_904_112,
                sram_aggregate_corrected=40,
                remapped_rows_corrected=2,
            ),
            "ok",
            id="a card in service for years has corrected some and remapped two rows",
        ),
        pytest.param(9, GpuHealth(), "skip", id="the GPU does not report corrected errors"),
        pytest.param(
            10,
            GpuHealth(ecc_volatile_corrected=9_600_000_000),
            "warn",
            id="billions were corrected since the driver was loaded",
        ),
        pytest.param(
            9,
            GpuHealth(ecc_volatile_corrected=0, dram_aggregate_corrected=54_000_000),
            "warn",
            id="millions were corrected before the driver was loaded",
        ),
        pytest.param(
            8,
            GpuHealth(ecc_volatile_corrected=3, sram_aggregate_corrected=10_001),
            "warn",
            id="the SRAM has corrected more than ten thousand",
        ),
        pytest.param(
            7,
            GpuHealth(ecc_volatile_corrected=30_000_000),
            "ok",
            id="a V100, for which no limit is known",
        ),
    ],
)
def test_rows(major: int, health: GpuHealth, expected: str) -> None:
    fact = Gpu(index=0, cc_major=major, health=health)
    found = judge(ecc_corrected_errors.few_errors_were_corrected, gpus=Gpus(gpus=(fact,)))
    assert found.status == expected
