"""Rows of `vgpu-unlicensed`."""

from __future__ import annotations

import pytest

from dsdoctor.api import CudaDevice, Environment, Gpu, Gpus, ImportOutcome, TorchLive
from dsdoctor.testing import judge
from dsdoctor_checks.driver import vgpu_unlicensed


@pytest.mark.parametrize(
    ("virtualization", "licensed", "expected"),
    [
        pytest.param("VGPU", False, "warn", id="a virtual GPU without a license"),
        pytest.param("VGPU", True, "ok", id="a virtual GPU with its license"),
        pytest.param("VGPU", None, "skip", id="a virtual GPU of which the driver says nothing"),
        pytest.param("PASSTHROUGH", False, "ok", id="a whole GPU in a virtual machine"),
        pytest.param("NONE", None, "ok", id="a machine of its own"),
        pytest.param(None, False, "ok", id="an unknown kind"),
    ],
)
def test_rows(virtualization: str | None, licensed: bool | None, expected: str) -> None:
    gpu = Gpu(index=0, name="NVIDIA A40-48C", virtualization=virtualization, licensed=licensed)
    assert judge(vgpu_unlicensed.vgpus_hold_licenses, gpus=Gpus(gpus=(gpu,))).status == expected


def test_only_the_gpus_of_the_run_count() -> None:
    held, lacking = (
        Gpu(index=index, name="GRID T4-16C", virtualization="VGPU", licensed=not index)
        for index in range(2)
    )
    gpus = Gpus(gpus=(held, lacking))
    env = Environment(variables={"CUDA_VISIBLE_DEVICES": "0"})
    check = vgpu_unlicensed.vgpus_hold_licenses
    assert judge(check, gpus=gpus, environment=env).status == "ok"
    assert judge(check, gpus=gpus).status == "warn"


@pytest.mark.parametrize(
    ("works", "expected"),
    [
        pytest.param(True, "warn", id="CUDA still works on it"),
        pytest.param(False, "fail", id="CUDA refuses it"),
    ],
)
def test_a_refusal_of_cuda_follows_from_the_license(works: bool, expected: str) -> None:
    gpu = Gpu(index=0, name="NVIDIA A10-24Q", virtualization="VGPU", licensed=False)
    device = CudaDevice(index=0, name="NVIDIA A10-24Q", major=8, minor=6, ok=works)
    live = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=(device,))
    found = judge(vgpu_unlicensed.vgpus_hold_licenses, gpus=Gpus(gpus=(gpu,)), torch_live=live)
    assert found.status == expected
