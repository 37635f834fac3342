"""Rows of `cpus-far-from-gpu`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Gpu, Gpus, PciTree, Resources, RunNeeds
from dsdoctor_checks.topology import cpus_far_from_gpu
from tests.checks.gpu.support import NOT_SET, bad, worst

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
        (node(NEAR), (), "ok"),
        (node(None), FAR, "ok"),
        (node(NEAR), FAR, "warn"),
        (node(NEAR, FAR), NEAR, "warn"),
    ],
)
def test_rows(found: Gpus, cpus: tuple[int, ...], expected: str) -> None:
    assert worst(CHECK, PciTree(cpus=cpus), found, machine(), RunNeeds(), NOT_SET) == expected


def test_cpus_that_this_machine_has_not_got() -> None:
    assert worst(CHECK, PciTree(cpus=(0, 1)), node(FAR), machine(2), RunNeeds(), NOT_SET) == "ok"


def test_only_the_chosen_gpus_count() -> None:
    run = RunNeeds(gpus=("0",))
    assert worst(CHECK, PciTree(cpus=NEAR), node(NEAR, FAR), machine(), run, NOT_SET) == "ok"
    (finding,) = bad(CHECK, PciTree(cpus=FAR), node(NEAR, FAR), machine(), run, NOT_SET)
    assert "none of them is near GPU 0 (NUMA node 0)" in finding.message
