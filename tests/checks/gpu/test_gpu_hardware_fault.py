"""Rows of `gpu-hardware-fault`: Xids of the kernel's log against the GPUs of a run."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    Environment,
    Gpu,
    Gpus,
    KernelLog,
    Missing,
    RecoveryAction,
    XidEvent,
)
from dsdoctor.model.facts.gpu import GpuHealth, GpuLink
from dsdoctor.testing import judge, missing
from dsdoctor_checks.gpu import _xids, gpu_hardware_fault
from tests.checks import machines

CHECK = gpu_hardware_fault.kernel_log_is_clean
LIMITS = gpu_hardware_fault.XidLimits()


def gpu(index: int = 0, **health: Any) -> Gpu:
    return Gpu(
        index=index, pci_bdf=f"0000:{0x1B + index:02x}:00.0", health=GpuHealth(**health), links=()
    )


def xid(code: int, bdf: str = "0000:1b:00", age: float | None = 60, **more: Any) -> XidEvent:
    return XidEvent(code=code, bdf=bdf, age_s=age, **more)


def verdict(
    *events: XidEvent, found: Gpus | Missing | None = None, os: Any = None, **variables: str
) -> str:
    log = KernelLog(source="dmesg", xids=events)
    gpus = found or Gpus(gpus=(gpu(), gpu(1)))
    env = Environment(variables=variables)
    return judge(
        CHECK, kernel_log=log, gpus=gpus, os_info=os or machines.LINUX, environment=env
    ).status


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(xid(79), "fail", id="the GPU fell off the bus"),
        pytest.param(xid(48), "fail", id="an uncorrectable memory error a minute ago"),
        pytest.param(
            xid(48, age=None), "fail", id="an uncorrectable memory error at an unknown time"
        ),
        pytest.param(
            xid(48, age=90 * 3600.0), "ok", id="an uncorrectable memory error almost four days ago"
        ),
        pytest.param(xid(94), "warn", id="a contained memory error"),
        pytest.param(xid(13), "ok", id="a graphics exception, which a program can cause"),
        pytest.param(xid(31), "ok", id="an MMU fault, which a program can cause"),
        pytest.param(xid(43), "ok", id="a channel was stopped, which a program can cause"),
        pytest.param(xid(9999), "ok", id="an Xid that is not in the table"),
        pytest.param(xid(74), "warn", id="an NVLink error"),
        pytest.param(
            xid(154, text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset)"),
            "fail",
            id="the driver asks for a GPU reset",
        ),
        pytest.param(
            xid(154, text="GPU recovery action changed from 0x1 (GPU Reset) to 0x0 (None)"),
            "ok",
            id="the driver no longer asks for a reset",
        ),
        pytest.param(
            xid(28006, text="Non-fatal, Link 46 MC TS crumbstore", switch=True),
            "ok",
            id="a non-fatal event of an NVSwitch",
        ),
    ],
)
def test_rows(event: XidEvent, expected: str) -> None:
    assert verdict(event) == expected


def test_a_fatal_error_of_a_switch() -> None:
    event = xid(20034, "0000:c4:00", text="Fatal, Link 30 LTSSM Fault Up", switch=True)
    assert verdict(event) == "fail"


def test_an_nvlink_error_counts_where_links_are_used() -> None:
    linked = Gpu(index=0, pci_bdf="0000:1b:00.0", links=(GpuLink(link=0, state=1),))
    assert verdict(xid(74), found=Gpus(gpus=(linked,))) == "fail"


def test_the_driver_s_own_word_after_a_reset() -> None:
    assert verdict(xid(48), found=Gpus(gpus=(gpu(recovery_action=0),))) == "warn"
    assert verdict(xid(48), found=Gpus(gpus=(gpu(recovery_action=1),))) == "fail"


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        pytest.param(RecoveryAction.GPU_RESET, "ok", id="gpu-reset-required says so"),
        pytest.param(None, "fail", id="the driver has no such field"),
    ],
)
def test_the_xid_that_repeats_a_field_of_the_driver(
    action: RecoveryAction | None, expected: str
) -> None:
    event = xid(154, text="GPU recovery action changed from 0x0 (None) to 0x1 (GPU Reset)")
    assert verdict(event, found=Gpus(gpus=(gpu(recovery_action=action),))) == expected
    assert verdict(xid(62), event, found=Gpus(gpus=(gpu(recovery_action=action),))) == "fail"


def test_a_row_that_was_replaced() -> None:
    assert verdict(xid(63)) == "warn"
    assert verdict(xid(63), found=Gpus(gpus=(gpu(remapped_rows_pending=False),))) == "ok"


def test_other_gpus_do_not_count() -> None:
    assert verdict(xid(79, "0000:1c:00"), CUDA_VISIBLE_DEVICES="0") == "ok"
    assert verdict(xid(79, "0000:1c:00"), CUDA_VISIBLE_DEVICES="1") == "fail"


def test_a_gpu_that_has_vanished() -> None:
    gone = xid(79, "0000:99:00")
    assert verdict(gone) == "fail"
    assert verdict(gone, CUDA_VISIBLE_DEVICES="0") == "ok"
    assert verdict(gone, os=machines.DOCKER) == "ok"
    assert verdict(gone, found=missing()) == "fail"


def test_the_finding_says_which_and_when() -> None:
    log = KernelLog(source="dmesg", xids=(xid(79, age=7200), xid(79, age=120)))
    (finding,) = judge(
        CHECK,
        kernel_log=log,
        gpus=Gpus(gpus=(gpu(),)),
        os_info=machines.LINUX,
        environment=machines.NO_ENV,
    ).bad
    assert "Xid 79 (GPU has fallen off the bus) for GPU 0, 2 min ago" in finding.message
    assert finding.evidence["count"] == 2


@pytest.mark.parametrize("code", sorted(_xids.XIDS))
def test_every_number_says_what_to_do(code: int) -> None:
    rule = _xids.lookup(code, "")
    assert rule.meaning
    assert rule.level in (_xids.FATAL, _xids.WARN, _xids.INFO)
    assert rule.action[0].islower()


@pytest.mark.parametrize(
    ("code", "bdf", "expected"),
    [
        pytest.param(79, "0000:9a:00", "fail", id="the GPU that fell off the bus is not there"),
        pytest.param(79, "0000:1b:00", "ok", id="the GPU is there again"),
        pytest.param(48, "0000:9a:00", "ok", id="an old error of another device"),
    ],
)
def test_a_gpu_that_is_gone_does_not_come_back_with_time(
    code: int, bdf: str, expected: str
) -> None:
    assert verdict(xid(code, bdf, age=240 * 3600.0)) == expected
