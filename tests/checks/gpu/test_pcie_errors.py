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
        pytest.param(gpu(), missing(), "ok", id="a link without errors or replays"),
        pytest.param(gpu(None), missing(), "skip", id="nothing counts the errors of the link"),
        pytest.param(gpu(replays=12), missing(), "ok", id="a dozen replays since boot"),
        pytest.param(
            gpu(correctable=40),
            log("corrected", 40),
            "ok",
            id="some corrected errors, in the counters and in the log",
        ),
        pytest.param(
            gpu(),
            log("fatal", 1, "0000:99:00"),
            "ok",
            id="a fatal error of another device on the bus",
        ),
        pytest.param(gpu(fatal=1), missing(), "fail", id="the counters show a fatal error"),
        pytest.param(gpu(), log("fatal", 1), "fail", id="the kernel's log shows a fatal error"),
        pytest.param(gpu(non_fatal=2), missing(), "warn", id="the counters show non-fatal errors"),
        pytest.param(
            gpu(), log("nonfatal", 3), "warn", id="the kernel's log shows non-fatal errors"
        ),
        pytest.param(gpu(correctable=20000), missing(), "warn", id="20,000 corrected errors"),
        pytest.param(gpu(replays=20000), missing(), "warn", id="20,000 replays"),
    ],
)
def test_rows(fact: Gpu, lines: KernelLog | Missing, expected: str) -> None:
    found = Gpus(gpus=(fact,))
    assert judge(pcie_errors.link_is_sound, gpus=found, kernel_log=lines).status == expected
