"""Rows of `iommu-between-gpus`."""

from __future__ import annotations

import pytest

from dsdoctor.api import GpuTopology, PciTree
from dsdoctor.testing import judge
from dsdoctor_checks.topology import iommu_between_gpus
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
