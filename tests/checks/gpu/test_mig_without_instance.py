"""Rows of `mig-without-instance`."""

from __future__ import annotations

import pytest

from dsdoctor import packs
from dsdoctor.api import Environment, Gpu, Gpus, RunNeeds
from dsdoctor.judge import judge as judged
from dsdoctor.model.facts.gpu import MigDevice, Unread
from dsdoctor.testing import judge
from dsdoctor_checks.gpu import mig_without_instance
from tests.support.composed import machine
from tests.support.described import Described

WHOLE = Gpu(index=0, mig_mode=False, mig_devices=())
EMPTY = Gpu(index=1, mig_mode=True, mig_devices=())
SLICED = Gpu(index=1, mig_mode=True, mig_devices=(MigDevice(index=0),))
#: In a container that may not list the MIG devices.
DENIED = Gpu(
    index=1,
    mig_mode=True,
    mig_devices=(),
    unread={"mig_devices": Unread(code=4, name="NO_PERMISSION")},
)


@pytest.mark.parametrize(
    ("gpus", "run", "expected"),
    [
        pytest.param((WHOLE,), RunNeeds(), "ok", id="no MIG"),
        pytest.param((SLICED,), RunNeeds(), "ok", id="MIG with a device"),
        pytest.param((EMPTY,), RunNeeds(), "fail", id="the only GPU has no device"),
        pytest.param((WHOLE, EMPTY), RunNeeds(), "warn", id="another GPU is whole"),
        pytest.param((WHOLE, EMPTY), RunNeeds(gpus=("1",)), "fail", id="the run names it"),
        pytest.param((WHOLE, EMPTY), RunNeeds(gpus=("0",)), "ok", id="the run names the other"),
        pytest.param((DENIED,), RunNeeds(), "ok", id="devices could not be listed"),
    ],
)
def test_rows(gpus: tuple[Gpu, ...], run: RunNeeds, expected: str) -> None:
    check = mig_without_instance.mig_gpus_have_devices
    assert (
        judge(
            check, gpus=Gpus(gpus=gpus, count=len(gpus)), run_needs=run, environment=Environment()
        ).status
        == expected
    )


def test_it_explains_why_cuda_does_not_start() -> None:
    said = Described(
        gpus="NVIDIA A100 80GB PCIe",
        torch="2.1.2+cu121",
        cuda_error=3,
        cuda_message="CUDA driver initialization failed, you might not have a CUDA gpu.",
        each_gpu={"mig_mode": True, "mig_mode_pending": True, "mig_devices": ()},
    )
    registry = packs.load(builtin_only=True)
    report = judged(machine(said), list(registry), registry)
    bad = [one.condition for one in report.findings if one.status.value in ("warn", "fail")]
    assert bad == ["mig-without-instance"]
