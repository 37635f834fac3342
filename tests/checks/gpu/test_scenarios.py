"""All checks of gpu and topology over every machine of the fake NVML, and over faults in them."""

from __future__ import annotations

import typing
from collections.abc import Callable
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.api import (
    Environment,
    RunNeeds,
)
from dsdoctor.testing import judge, missing, snapshot
from tests.nvml import fakenvml, scenarios
from tests.nvml.fakenvml import Scenario
from tests.nvml.test_parse import examine

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)

UNITS = [
    unit
    for unit in packs.load(builtin_only=True)
    if unit.family in ("gpu", "topology") and unit.check is not None
]


def found(
    scenario: Scenario, folder: Path, run: RunNeeds | None = None, **variables: str
) -> dict[str, str]:
    """Names of the conditions that are found, with the worst word said of each."""
    parsed = examine(scenario, folder)
    facts = snapshot(
        gpus=parsed.gpus or missing(),
        nvml=parsed.nvml or missing(),
        gpu_topology=parsed.topology or missing(),
        run_needs=run or RunNeeds(),
        environment=Environment(variables=variables),
    )
    judged = {unit: judge(unit.check, facts) for unit in UNITS if unit.check is not None}
    return {unit.condition.name: one.status for unit, one in judged.items() if one.bad}


ILL = {"h100_x8_dead_link", "h200_x8_lost", "h200_x8_lost_late"}
HEALTHY = {name: build for name, build in scenarios.ALL.items() if name not in ILL}


@pytest.mark.parametrize("name", sorted(HEALTHY))
def test_a_healthy_machine_is_silent(tmp_path: Path, name: str) -> None:
    assert found(HEALTHY[name](), tmp_path) == {}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param(
            "h100_x8_dead_link", {"nvlink-inactive": "fail"}, id="a DGX H100 with a dead NVLink"
        ),
        pytest.param(
            "h200_x8_lost", {"gpu-lost": "fail"}, id="a node with eight H200 of which one is lost"
        ),
        pytest.param(
            "h200_x8_lost_late",
            {"gpu-lost": "fail"},
            id="a node with eight H200 that loses one while it is examined",
        ),
    ],
)
def test_an_ill_machine(tmp_path: Path, name: str, expected: dict[str, str]) -> None:
    assert found(scenarios.ALL[name](), tmp_path) == expected


def _first(**changes: object) -> Callable[[Scenario], None]:
    def change(scenario: Scenario) -> None:
        scenario["gpus"][0].update(changes)  # type: ignore[typeddict-item]

    return change


def _merge(key: str, **changes: object) -> Callable[[Scenario], None]:
    def change(scenario: Scenario) -> None:
        gpu: typing.Any = scenario["gpus"][0]
        gpu[key] = {**gpu.get(key, {}), **changes}

    return change


def _ecc(kind: str, place: str, count: int) -> Callable[[Scenario], None]:
    def change(scenario: Scenario) -> None:
        gpu: typing.Any = scenario["gpus"][0]
        gpu["ecc_errors"][kind][place] = count

    return change


def _p2p_off(scenario: Scenario) -> None:
    scenario["p2p"] = {"read": 4, "write": 4, "nvlink": 4}


def _one_bridge_side_down(scenario: Scenario) -> None:
    scenario["gpus"][0]["links"][2] = {"state": 0}


def _no_persistence(scenario: Scenario) -> None:
    for gpu in scenario["gpus"]:
        gpu["persistence_mode"] = 0


def _slow_link(scenario: Scenario) -> None:
    scenario["gpus"][0]["links"][3]["speed_mbps"] = 13281


def _all_links_down(scenario: Scenario) -> None:
    for gpu in scenario["gpus"]:
        gpu["links"] = [{"state": 0} for _ in gpu["links"]]


def _taken(scenario: Scenario) -> None:
    gpu = scenario["gpus"][0]
    gpu["memory_used"] = gpu["memory_total"] * 95 // 100


FAULTS: dict[str, tuple[Callable[[], Scenario], Callable[[Scenario], None], dict[str, str]]] = {
    "reset": (scenarios.h200_x8, _merge("fields", **{"230": 1}), {"gpu-reset-required": "fail"}),
    "drain-p2p": (
        scenarios.h200_x8,
        _merge("fields", **{"230": 3}),
        {"gpu-reset-required": "warn"},
    ),
    "ecc": (
        scenarios.a100_x8,
        _ecc("volatile", "uncorrected", 2),
        {"ecc-uncorrectable": "fail"},
    ),
    "old-ecc": (scenarios.a100_x8, _ecc("aggregate", "uncorrected", 2), {}),
    "remap-failed": (
        scenarios.a100_x8,
        _merge("remapped_rows", failure=1),
        {"row-remap-failed": "fail"},
    ),
    "remap-pending": (
        scenarios.a100_x8,
        _merge("remapped_rows", pending=1),
        {"row-remap-pending": "warn"},
    ),
    "pages": (
        scenarios.v100_x4,
        _merge("retired_pages", pending=1),
        {"page-retirement-pending": "warn"},
    ),
    "inforom": (scenarios.l40s_x4, _first(inforom=14), {"inforom-corrupt": "fail"}),
    "power-brake": (scenarios.h100_x8, _first(event_reasons=0x88), {"gpu-throttled": "fail"}),
    "power-cap-under-load": (scenarios.h100_x8, _first(event_reasons=0x4), {}),
    "brake-at-idle": (scenarios.rtx_4090_x1, _first(event_reasons=0x81), {}),
    "hot": (scenarios.h100_x8, _first(temperature_c=90), {"gpu-overheating": "fail"}),
    "warm": (scenarios.h100_x8, _first(temperature_c=80), {}),
    "capped": (scenarios.h100_x8, _merge("power_mw", enforced=400_000), {"power-capped": "warn"}),
    "half-width": (scenarios.a100_x8, _merge("pcie", width=8), {"pcie-link-degraded": "warn"}),
    "quarter-width": (scenarios.a100_x8, _merge("pcie", width=4), {"pcie-link-degraded": "fail"}),
    "shared-slot": (scenarios.rtx_3090_x2_nvlink, _merge("pcie", width=8), {}),
    "idle-generation": (scenarios.a100_x8, _merge("pcie", generation=1), {}),
    "mig-pending": (
        scenarios.a100_x8,
        _first(mig_mode={"current": 0, "pending": 1}),
        {"mig-mode-pending": "warn"},
    ),
    "ecc-pending": (
        scenarios.a100_x8,
        _first(ecc_mode={"current": 1, "pending": 0}),
        {"ecc-mode-pending": "warn"},
    ),
    "repair": (
        scenarios.h100_x8,
        _merge("repair", tpc_pending=1),
        {"channel-repair-pending": "warn"},
    ),
    "gsp": (
        scenarios.h100_x8,
        _merge("gsp_firmware", version="570.1"),
        {"gsp-version-mismatch": "warn"},
    ),
    "taken": (scenarios.h100_x8, _taken, {"gpu-busy": "fail"}),
    "process": (
        scenarios.h100_x8,
        _first(compute_processes=[{"pid": 7, "used_bytes": 4 << 30}], memory_used=4 << 30),
        {"gpu-busy": "warn"},
    ),
    "monitor": (
        scenarios.h100_x8,
        _first(compute_processes=[{"pid": 7, "used_bytes": 64 << 20}]),
        {},
    ),
    "prohibited": (scenarios.l40s_x4, _first(compute_mode=2), {"gpu-busy-exclusive-mode": "fail"}),
    "exclusive": (scenarios.l40s_x4, _first(compute_mode=3), {}),
    "fabric": (
        scenarios.h100_x8,
        _merge("fabric", health_summary=2),
        {"nvlink-fabric-unhealthy": "fail"},
    ),
    "pcie-fatal": (scenarios.l40s_x4, _merge("fields", **{"180": 1}), {"pcie-errors": "fail"}),
    "no-persistence": (scenarios.h100_x8, _no_persistence, {"persistence-mode-off": "warn"}),
    "slow-link": (scenarios.h100_x8, _slow_link, {"nvlink-inactive": "warn"}),
    "all-links-down": (scenarios.a100_x8, _all_links_down, {"nvlink-inactive": "fail"}),
    "p2p-off": (scenarios.h100_x8, _p2p_off, {"p2p-unsupported": "fail"}),
    "bridge": (
        scenarios.rtx_3090_x2_nvlink,
        _one_bridge_side_down,
        {"nvlink-inactive": "fail"},
    ),
}


@pytest.mark.parametrize("fault", sorted(FAULTS))
def test_a_fault_yields_its_finding_and_no_other(tmp_path: Path, fault: str) -> None:
    build, change, expected = FAULTS[fault]
    scenario = build()
    change(scenario)
    assert found(scenario, tmp_path) == expected


def test_only_the_gpus_of_the_run_are_judged(tmp_path: Path) -> None:
    scenario = scenarios.h200_x8_lost()
    assert found(scenario, tmp_path, RunNeeds(gpus=("0", "1"))) == {}
    assert found(scenario, tmp_path, RunNeeds(gpus=("3",))) == {"gpu-lost": "fail"}
    assert found(scenario, tmp_path, CUDA_VISIBLE_DEVICES="0,1") == {}


def test_a_slice_is_no_place_for_a_run_over_several_gpus(tmp_path: Path) -> None:
    assert found(scenarios.a100_mig(), tmp_path, RunNeeds(gpus=("0",))) == {}
    assert found(scenarios.a100_mig(), tmp_path, RunNeeds(expect_gpus=2)) == {
        "gpu-count-unexpected": "fail",
        "mig-enabled-multi-gpu": "warn",
    }


def test_the_count(tmp_path: Path) -> None:
    run = RunNeeds(expect_gpus=8)
    assert found(scenarios.l40s_x4(), tmp_path, run) == {"gpu-count-unexpected": "fail"}
    assert found(scenarios.h100_x8(), tmp_path, run) == {}
