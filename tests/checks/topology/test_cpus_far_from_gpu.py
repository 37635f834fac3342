"""Rows of `cpus-far-from-gpu`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, PciTree, Resources, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.topology import cpus_far_from_gpu

CHECK = cpus_far_from_gpu.cpus_are_near
NEAR, FAR = tuple(range(8)), tuple(range(8, 16))


def machine(cpus: int = 16) -> Resources:
    return Resources(
        cpus_logical=cpus,
        cpus_usable=cpus,
        memory_total_bytes=1 << 36,
        memory_available_bytes=1 << 36,
    )


def node(*affinities: tuple[int, ...] | None) -> Gpus:
    return Gpus(
        gpus=tuple(
            Gpu(index=i, cpu_affinity=cpus, numa_node=i) for i, cpus in enumerate(affinities)
        )
    )


@pytest.mark.parametrize(
    ("found", "cpus", "expected"),
    [
        (node(NEAR), NEAR, "ok"),
        (node(NEAR, FAR), (*NEAR, *FAR), "ok"),
        (node(NEAR), (7, 8, 9), "ok"),
        (node(NEAR), (), "skip"),
        (node(None), FAR, "skip"),
        (node(NEAR), FAR, "warn"),
        (node(NEAR, FAR), NEAR, "warn"),
    ],
)
def test_rows(found: Gpus, cpus: tuple[int, ...], expected: str) -> None:
    assert (
        judge(CHECK, pci_tree=PciTree(cpus=cpus), gpus=found, resources=machine()).status
        == expected
    )


def test_cpus_that_this_machine_has_not_got() -> None:
    assert (
        judge(CHECK, pci_tree=PciTree(cpus=(0, 1)), gpus=node(FAR), resources=machine(2)).status
        == "skip"
    )


def test_only_the_chosen_gpus_count() -> None:
    run = RunNeeds(gpus=("0",))
    assert (
        judge(
            CHECK,
            pci_tree=PciTree(cpus=NEAR),
            gpus=node(NEAR, FAR),
            resources=machine(),
            run_needs=run,
        ).status
        == "ok"
    )
    (finding,) = judge(
        CHECK, pci_tree=PciTree(cpus=FAR), gpus=node(NEAR, FAR), resources=machine(), run_needs=run
    ).bad
    assert "none of them is near GPU 0 (NUMA node 0)" in finding.message
