"""Rows of `gpu-subset-slow`, and the rings that it stands on."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Gpus, GpuTopology, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.topology import gpu_subset_slow
from dsdoctor_checks.topology._ring import best_ring
from tests.checks.topology.support import gpus, topology

CHECK = gpu_subset_slow.subset_is_close
BRIDGED = topology("""
X   NV4 SYS SYS
NV4 X   SYS SYS
SYS SYS X   NV4
SYS SYS NV4 X
""")
FLAT = topology("""
X    NV18 NV18 NV18
NV18 X    NV18 NV18
NV18 NV18 X    NV18
NV18 NV18 NV18 X
""")
CUBE = topology("""
X   NV1 NV1 NV2 NV2 SYS SYS SYS
NV1 X   NV2 NV1 SYS NV2 SYS SYS
NV1 NV2 X   NV2 SYS SYS NV1 SYS
NV2 NV1 NV2 X   SYS SYS SYS NV1
NV2 SYS SYS SYS X   NV1 NV1 NV2
SYS NV2 SYS SYS NV1 X   NV2 NV1
SYS SYS NV1 SYS NV1 NV2 X   NV2
SYS SYS SYS NV1 NV2 NV1 NV2 X
""")
NONE = Environment()


def pick(*indices: int) -> RunNeeds:
    return RunNeeds(gpus=tuple(str(index) for index in indices))


@pytest.mark.parametrize(
    ("found", "how", "run", "expected"),
    [
        pytest.param(gpus(4), BRIDGED, RunNeeds(), "ok", id="all four GPUs of two bridged pairs"),
        pytest.param(gpus(4), BRIDGED, pick(0), "skip", id="one GPU"),
        pytest.param(gpus(4), BRIDGED, pick(0, 1), "ok", id="the first bridged pair"),
        pytest.param(gpus(4), BRIDGED, pick(2, 3), "ok", id="the second bridged pair"),
        pytest.param(gpus(4), BRIDGED, pick(0, 2), "warn", id="one GPU of each bridged pair"),
        pytest.param(
            gpus(4), BRIDGED, pick(0, 1, 2), "ok", id="three GPUs, which no bridge can join"
        ),  # no three are better
        pytest.param(gpus(4), FLAT, pick(0, 3), "ok", id="two GPUs where all are linked alike"),
        pytest.param(
            gpus(8), CUBE, pick(0, 7), "warn", id="two GPUs of a cube without a link between them"
        ),
        pytest.param(gpus(8), CUBE, pick(*range(8)), "ok", id="all eight GPUs of a cube"),
        pytest.param(
            gpus(4), GpuTopology(), pick(0, 2), "ok", id="the links between the GPUs are unknown"
        ),
    ],
)
def test_rows(found: Gpus, how: GpuTopology, run: RunNeeds, expected: str) -> None:
    assert (
        judge(CHECK, gpus=found, gpu_topology=how, run_needs=run, environment=NONE).status
        == expected
    )


def test_it_names_the_better_ones() -> None:
    (finding,) = judge(
        CHECK, gpus=gpus(4), gpu_topology=BRIDGED, run_needs=pick(1, 2), environment=NONE
    ).bad
    assert "--include localhost:0,1`" in finding.hint
    assert "SYS as its slowest hop, but GPUs 0 and 1 are free and would have NV4" in finding.message


def test_gpus_in_use_are_not_advised() -> None:
    busy = gpus(4, memory_used_bytes=40 << 30)
    (finding,) = judge(
        CHECK, gpus=busy, gpu_topology=BRIDGED, run_needs=pick(1, 2), environment=NONE
    ).bad
    assert "--include localhost:2,3`" in finding.hint


def test_a_scheduler_s_choice_is_not_the_user_s() -> None:
    slurm = Environment(variables={"SLURM_JOB_ID": "7"})
    assert (
        judge(
            CHECK, gpus=gpus(4), gpu_topology=BRIDGED, run_needs=pick(0, 2), environment=slurm
        ).status
        == "ok"
    )


def test_the_ring_is_told() -> None:
    (finding,) = judge(
        CHECK, gpus=gpus(8), gpu_topology=CUBE, run_needs=pick(*range(8)), environment=NONE
    ).findings
    assert finding.message.endswith("slowest hop NV2")


@pytest.mark.parametrize(
    ("how", "chosen", "slowest"),
    [
        pytest.param(BRIDGED, (0, 1), "NV4", id="a bridged pair"),
        pytest.param(BRIDGED, (0, 1, 2, 3), "SYS", id="two bridged pairs must cross the sockets"),
        pytest.param(CUBE, (0, 1, 2, 3), "NV1", id="half of a cube has links all the way round"),
    ],
)
def test_the_best_ring(how: GpuTopology, chosen: tuple[int, ...], slowest: str) -> None:
    ring, worst_hop = best_ring(how, chosen)
    assert sorted(ring) == sorted(chosen)
    assert worst_hop == slowest
