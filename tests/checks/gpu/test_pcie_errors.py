"""Rows of `pcie-errors`."""

from __future__ import annotations

import pytest

from dsdoctor.api import BusEvents, Gpu, Gpus, KernelLog, Missing
from dsdoctor.model.facts.gpu import PcieErrors, PcieLink
from dsdoctor.testing import judge, missing
from dsdoctor_checks.gpu import pcie_errors

LIMITS = pcie_errors.BusLimits()


def gpu(replays: int | None = 0, **errors: int) -> Gpu:
    link = PcieLink(replay_counter=replays, errors=PcieErrors(**errors))
    return Gpu(index=0, pci_bdf="0000:1b:00.0", pcie=link)


def log(severity: str, count: int, bdf: str = "0000:1b:00") -> KernelLog:
    return KernelLog(source="dmesg", bus=(BusEvents(bdf=bdf, severity=severity, count=count),))


@pytest.mark.parametrize(
    ("fact", "lines", "expected"),
    [
        (gpu(), missing(), "ok"),
        (gpu(None), missing(), "skip"),
        (gpu(replays=12), missing(), "ok"),
        (gpu(correctable=40), log("corrected", 40), "ok"),
        (gpu(), log("fatal", 1, "0000:99:00"), "ok"),
        (gpu(fatal=1), missing(), "fail"),
        (gpu(), log("fatal", 1), "fail"),
        (gpu(non_fatal=2), missing(), "warn"),
        (gpu(), log("nonfatal", 3), "warn"),
        (gpu(correctable=20000), missing(), "warn"),
        (gpu(replays=20000), missing(), "warn"),
    ],
)
def test_rows(fact: Gpu, lines: KernelLog | Missing, expected: str) -> None:
    found = Gpus(gpus=(fact,))
    assert judge(pcie_errors.link_is_sound, gpus=found, kernel_log=lines).status == expected
