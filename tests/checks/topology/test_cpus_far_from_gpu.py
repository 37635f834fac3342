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
        pytest.param(node(NEAR), NEAR, "ok", id="the process may use the CPUs near the GPU"),
        pytest.param(
            node(NEAR, FAR), (*NEAR, *FAR), "ok", id="the process may use the CPUs near both GPUs"
        ),
        pytest.param(node(NEAR), (7, 8, 9), "ok", id="one of three CPUs is near the GPU"),
        pytest.param(node(NEAR), (), "skip", id="the CPUs of the process are unknown"),
        pytest.param(node(None), FAR, "skip", id="the CPUs near the GPU are unknown"),
        pytest.param(node(NEAR), FAR, "warn", id="all CPUs are far from the GPU"),
        pytest.param(node(NEAR, FAR), NEAR, "warn", id="all CPUs are far from the second GPU"),
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
