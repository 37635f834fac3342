"""Rows of `iommu-between-gpus`."""

from __future__ import annotations

import pytest

from dsdoctor.api import (
    GpuTopology,
    LaunchCommand,
    NvidiaKernel,
    PciPlace,
    PciTree,
    RunNeeds,
    TorchBuild,
)
from dsdoctor.probes.pci import pci_tree
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.topology import iommu_between_gpus
from tests.checks.machines import ABSENT
from tests.checks.topology.support import gpus, switch, topology

CHECK = iommu_between_gpus.transfers_are_direct
PLAIN = topology("X PHB\nPHB X")
LINKED = topology("X NV4\nNV4 X")
BARRED = topology("X PHB\nPHB X", "GPU_NOT_SUPPORTED")


@pytest.mark.parametrize(
    ("tree", "how", "expected"),
    [
        pytest.param(switch("gpu", "gpu"), PLAIN, "ok", id="the IOMMU is off"),
        pytest.param(
            switch("gpu", "gpu", iommu="identity"),
            PLAIN,
            "ok",
            id="the IOMMU passes addresses through",
        ),
        pytest.param(
            switch("gpu", "gpu", iommu="DMA"),
            LINKED,
            "ok",
            id="the IOMMU translates, but the GPUs use NVLink",
        ),
        pytest.param(
            switch("gpu", "gpu", iommu="DMA"),
            BARRED,
            "ok",
            id="the IOMMU translates, but the GPUs cannot reach each other anyway",
        ),
        pytest.param(
            switch("gpu", "gpu", iommu="DMA", virtual=True),
            PLAIN,
            "skip",
            id="a virtual machine, whose host decides",
        ),
        pytest.param(
            switch("gpu", "gpu", iommu="DMA"),
            PLAIN,
            "warn",
            id="the IOMMU translates between the GPUs",
        ),
        pytest.param(
            switch("gpu", "gpu", iommu="DMA-FQ"),
            PLAIN,
            "warn",
            id="the IOMMU translates with a flush queue",
        ),
    ],
)
def test_rows(tree: PciTree, how: GpuTopology, expected: str) -> None:
    assert judge(CHECK, pci_tree=tree, gpus=gpus(2), gpu_topology=how).status == expected


ROCM = TorchBuild(version="2.7.0+rocm6.3", hip="6.3")
ABSENT_KERNEL = NvidiaKernel()


def amd(*kinds: str | None, virtual: bool = False) -> PciTree:
    places = (PciPlace(bdf=f"0000:4{n}:00.0", iommu=kind) for n, kind in enumerate(kinds))
    return PciTree(amd=tuple(places), virtual=virtual)


@pytest.mark.parametrize(
    ("tree", "torch", "ranks", "expected"),
    [
        pytest.param(amd("DMA-FQ", "DMA-FQ"), ROCM, 2, "warn", id="two ranks, and it translates"),
        pytest.param(amd("identity", "identity"), ROCM, 2, "ok", id="it passes addresses through"),
        pytest.param(amd("DMA-FQ", "DMA-FQ"), ROCM, 1, "skip", id="one rank"),
        pytest.param(amd("DMA-FQ"), ROCM, 2, "ok", id="one GPU"),
        pytest.param(amd("DMA", "DMA", virtual=True), ROCM, 2, "skip", id="a virtual machine"),
        pytest.param(
            amd("DMA", "DMA"), TorchBuild(version="2.7.0", cuda="12.8"), 2, "skip", id="for CUDA"
        ),
    ],
)
def test_amd_gpus(tree: PciTree, torch: TorchBuild, ranks: int, expected: str) -> None:
    command = LaunchCommand(launcher="torchrun", argv=("torchrun", "t.py"), num_gpus=ranks)
    found = judge(
        CHECK,
        pci_tree=tree,
        gpus=ABSENT,
        gpu_topology=ABSENT,
        torch_build=torch,
        launch_command=command,
        run_needs=RunNeeds(),
    )
    assert found.status == expected


def test_gpus_that_the_driver_of_amd_serves_are_found() -> None:
    folder = "/sys/bus/pci/drivers/amdgpu"
    files = {
        f"{folder}/0000:43:00.0/vendor": "0x1002\n",
        f"{folder}/module/refcnt": "1\n",
        "/sys/bus/pci/devices/0000:43:00.0/iommu_group/type": "DMA-FQ\n",
    }
    (place,) = pci_tree.function(FakeHost(files=files), kernel=ABSENT_KERNEL).amd
    assert (place.bdf, place.iommu) == ("0000:43:00.0", "DMA-FQ")
