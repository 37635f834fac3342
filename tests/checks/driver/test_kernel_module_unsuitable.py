"""Rows of `kernel-module-unsuitable`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, NvidiaKernel, PciGpu
from dsdoctor.testing import judge
from dsdoctor_checks.driver import kernel_module_unsuitable


def on_bus(*ids: str, driver: str | None = "nvidia") -> tuple[PciGpu, ...]:
    return tuple(
        PciGpu(bdf=f"0000:{number:02x}:00.0", device_id=one, driver=driver)
        for number, one in enumerate(ids, 1)
    )


@pytest.mark.parametrize(
    ("is_open", "pci", "expected"),
    [
        pytest.param(False, on_bus("0x2b85"), "fail", id="RTX 5090, proprietary"),
        pytest.param(True, on_bus("0x2b85"), "ok", id="RTX 5090, open"),
        pytest.param(False, on_bus("0x2330", "0x2684", "0x1e04"), "ok", id="Turing to Hopper"),
        pytest.param(True, on_bus("0x2330", "0x2684", "0x1e04"), "ok", id="Turing to Hopper, open"),
        pytest.param(True, on_bus("0x1db6"), "fail", id="V100, open"),
        pytest.param(True, on_bus("0x2204", "0x1b06"), "warn", id="an old GPU beside a newer one"),
        pytest.param(False, on_bus("0x2204", "0x2b85"), "fail", id="a new GPU beside an older one"),
        pytest.param(True, on_bus("0x2204", "0x128b"), "ok", id="Kepler, which neither kind knows"),
        pytest.param(True, on_bus("0x1b06", driver="nouveau"), "ok", id="nouveau has the GPU"),
        pytest.param(False, on_bus("0x1db6"), "ok", id="V100, proprietary"),
        pytest.param(
            False, on_bus("0x2b85", driver="vfio-pci"), "ok", id="a virtual machine has the GPU"
        ),
        pytest.param(False, on_bus(""), "ok", id="a GPU whose id is not known"),
        pytest.param(None, on_bus("0x2b85"), "skip", id="a module of an unknown kind"),
    ],
)
def test_rows(is_open: bool | None, pci: tuple[PciGpu, ...], expected: str) -> None:
    kernel = NvidiaKernel(module_version="570.144", module_open=is_open, pci=pci)
    judged = judge(kernel_module_unsuitable.module_serves_each_gpu, nvidia_kernel=kernel)
    assert judged.status == expected


def test_no_module_no_verdict() -> None:
    """That it is not loaded is `driver-missing`."""
    kernel = NvidiaKernel(pci=on_bus("0x2b85", driver=None))
    judged = judge(kernel_module_unsuitable.module_serves_each_gpu, nvidia_kernel=kernel)
    assert judged.status == "skip"


@pytest.mark.parametrize(("version", "expected"), [("580.82.07", "fail"), ("595.45.04", "ok")])
def test_no_advice_that_would_not_help(version: str, expected: str) -> None:
    """Since 590, neither kind knows a GPU before Turing."""
    kernel = NvidiaKernel(module_version=version, module_open=True, pci=on_bus("0x1db6"))
    judged = judge(kernel_module_unsuitable.module_serves_each_gpu, nvidia_kernel=kernel)
    assert judged.status == expected


def test_a_gpu_that_the_driver_lists_outranks_the_table() -> None:
    kernel = NvidiaKernel(module_version="570.144", module_open=False, pci=on_bus("0x2b85"))
    gpus = Gpus(gpus=(Gpu(index=0, pci_bdf="0000:01:00.0"),))
    check = kernel_module_unsuitable.module_serves_each_gpu
    assert judge(check, nvidia_kernel=kernel, gpus=gpus).status == "ok"
    assert judge(check, nvidia_kernel=kernel, gpus=Gpus(gpus=(), count=0)).status == "fail"
