"""The child script and the parser, end to end over the fake NVML, on every machine we know.

Over 400 lines because each machine and each fault has its own row.
"""

from __future__ import annotations

import ast
import copy
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

import dsdoctor.probes.gpu_parse
from dsdoctor.model.facts.gpu import EventReason, Gpu, GpuLink, GpuPair, RecoveryAction
from dsdoctor.probes.gpu_parse import ParsedNvml, count_nvlinks, parse
from tests.nvml import fakenvml, scenarios

if TYPE_CHECKING:
    from tests.nvml.fakenvml import Scenario

CHILD = Path(dsdoctor.probes.gpu_parse.__file__).parent / "children" / "nvml.py"
SENTINEL = "\x1edsdoctor:"

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)

Records = list[dict[str, Any]]


def decode(output: str) -> Records:
    """Return the records of what the child wrote; anything else on stdout is an error here."""
    before, *chunks = output.split(SENTINEL)
    assert before == ""
    return [json.loads(chunk) for chunk in chunks if chunk.endswith("\n")]


def run(scenario: Scenario | None, folder: Path, *arguments: str) -> Records:
    """Run the child to its end."""
    environment = {**os.environ, "LD_LIBRARY_PATH": ""}
    if scenario is not None:
        environment.update(fakenvml.environment(scenario, folder))
    result = subprocess.run(
        [sys.executable, str(CHILD), *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    return decode(result.stdout)


def examine(scenario: Scenario, folder: Path, *arguments: str) -> ParsedNvml:
    """Run child and parser."""
    parsed = parse(run(scenario, folder, *arguments))
    assert parsed.malformed == ()
    assert parsed.stopped_at is None
    return parsed


def gpus(parsed: ParsedNvml) -> tuple[Gpu, ...]:
    """Return the GPUs, which must be there."""
    assert parsed.gpus is not None
    assert parsed.gpus.count == len(parsed.gpus.gpus)
    return parsed.gpus.gpus


def pairs(parsed: ParsedNvml) -> tuple[GpuPair, ...]:
    """Return the pairs, which must be there."""
    assert parsed.topology is not None
    return parsed.topology.pairs


def missing_without_reason(gpu: Gpu) -> list[str]:
    """Return the values that are None though nothing says why."""
    found = []

    def walk(prefix: str, value: object) -> None:
        if isinstance(value, msgspec.Struct):
            for field in value.__struct_fields__:
                walk(f"{prefix}.{field}" if prefix else field, getattr(value, field))
        elif value is None and prefix not in gpu.unread:
            found.append(prefix)

    walk("", gpu)
    return found


# (GPUs, name, cc, MiB, active links of GPU 0, label of pair 0-1, P2P read of pair 0-1)
EXPECTED: dict[str, tuple[int, str, tuple[int, int], int, int, str | None, str | None]] = {
    "laptop_mx450": (1, "NVIDIA GeForce MX450", (7, 5), 2048, 0, None, None),
    "rtx_4090_x1": (1, "NVIDIA GeForce RTX 4090", (8, 9), 24564, 0, None, None),
    "rtx_3090_x2_nvlink": (2, "NVIDIA GeForce RTX 3090", (8, 6), 24576, 4, "NV4", "OK"),
    "v100_x4": (4, "Tesla V100-SXM2-32GB", (7, 0), 32768, 6, "NV2", "OK"),
    "a100_x8": (8, "NVIDIA A100-SXM4-80GB", (8, 0), 81920, 12, "NV12", "OK"),
    "h100_x8": (8, "NVIDIA H100 80GB HBM3", (9, 0), 81559, 18, "NV18", "OK"),
    "h100_x8_dead_link": (8, "NVIDIA H100 80GB HBM3", (9, 0), 81559, 18, "NV18", "OK"),
    "h100_pcie_x2_bridged": (2, "NVIDIA H100 PCIe", (9, 0), 81559, 12, "NV12", "OK"),
    "h100_pcie_x2": (2, "NVIDIA H100 PCIe", (9, 0), 81559, 0, "NODE", "OK"),
    "h200_x8": (8, "NVIDIA H200", (9, 0), 143771, 18, "NV18", "OK"),
    "h200_x8_lost": (8, "NVIDIA H200", (9, 0), 143771, 18, "NV18", "OK"),
    "h200_x8_lost_late": (8, "NVIDIA H200", (9, 0), 143771, 18, "NV18", "OK"),
    "l40s_x4": (4, "NVIDIA L40S", (8, 9), 46068, 0, "NODE", "CHIPSET_NOT_SUPPORTED"),
    "b200_x8": (8, "NVIDIA B200", (10, 0), 183359, 18, "NV18", "OK"),
    "mixed_a100_3090": (
        2, "NVIDIA A100-PCIE-40GB", (8, 0), 40960, 0, "PHB", "GPU_NOT_SUPPORTED",
    ),
    "a100_mig": (1, "NVIDIA A100-SXM4-80GB", (8, 0), 81920, 0, None, None),
    "wsl": (1, "NVIDIA GeForce RTX 3090", (8, 6), 24576, 0, None, None),
    "driver_470": (2, "NVIDIA A100-PCIE-40GB", (8, 0), 40960, 0, "PHB", "OK"),
    "driver_999": (2, "NVIDIA X900", (15, 0), 1048576, 0, "UNKNOWN_60", "UNKNOWN_42"),
}  # fmt: skip


def test_every_scenario_is_expected_somewhere() -> None:
    assert set(EXPECTED) == set(scenarios.ALL)


@pytest.mark.parametrize("name", EXPECTED)
def test_machine(tmp_path: Path, name: str) -> None:
    count, model, cc, mib, links, label, p2p = EXPECTED[name]
    parsed = examine(scenarios.ALL[name](), tmp_path)
    found = gpus(parsed)

    assert [gpu.index for gpu in found] == list(range(count))
    first = found[0]
    assert (first.name, first.cc) == (model, cc)
    assert first.memory_total_bytes == mib * 1024 * 1024
    assert len(first.active_links) == links
    assert len(pairs(parsed)) == count * (count - 1) // 2
    assert parsed.topology is not None
    pair = parsed.topology.pair(1, 0)
    assert (pair.label if pair else None, pair.p2p_read if pair else None) == (label, p2p)
    assert parsed.nvml is not None
    assert parsed.nvml.error is None
    assert parsed.nvml.unread == {}


# What may be None without a reason: "error" is a finding, not a reading, only virtual GPUs are asked
# for their license, and the health of the fabric has no place in the struct that older drivers fill.
def test_nothing_is_missing_without_a_reason(tmp_path: Path) -> None:
    for name, builder in scenarios.ALL.items():
        for gpu in gpus(examine(builder(), tmp_path)):
            if "handle" not in gpu.unread:
                assert set(missing_without_reason(gpu)) - {"error", "licensed"} == set(), name
            assert gpu.error is None or "lost" in name


@pytest.mark.parametrize(
    ("mode", "held", "expected"),
    [
        pytest.param(2, 0, False, id="a virtual GPU without"),
        pytest.param(2, 1, True, id="a virtual GPU with"),
        pytest.param(1, 0, None, id="a whole GPU in a virtual machine"),
    ],
)
def test_a_license_is_read_of_virtual_gpus(
    mode: int, held: int, expected: bool | None, tmp_path: Path
) -> None:
    scenario = scenarios.rtx_4090_x1()
    scenario["gpus"][0] |= {"virtualization_mode": mode, "licensed": held}
    assert gpus(examine(scenario, tmp_path))[0].licensed is expected


def test_a_virtual_gpu_that_needs_no_license_says_none(tmp_path: Path) -> None:
    scenario = scenarios.rtx_4090_x1()
    scenario["gpus"][0]["virtualization_mode"] = 2
    gpu = gpus(examine(scenario, tmp_path))[0]
    assert (gpu.licensed, "licensed" in gpu.unread) == (None, False)


def test_a_healthy_h100_has_every_value(tmp_path: Path) -> None:
    gpu = gpus(examine(scenarios.h100_x8(), tmp_path))[6]
    assert set(gpu.unread) == {
        "gpu_numa_node",
        "health.retired_pages_single_bit",
        "health.retired_pages_double_bit",
        "health.retired_pages_pending",
        "health.temperature_memory_max_c",
    }
    assert (gpu.brand, gpu.architecture, gpu.virtualization) == ("NVIDIA", "Hopper", "NONE")
    assert gpu.pci_bdf == "0000:7b:00.0"
    assert gpu.pci_device_id == 0x233010DE
    assert (gpu.minor_number, gpu.numa_node) == (6, 1)
    assert gpu.cpu_affinity == (*range(48, 96), *range(144, 192))
    assert (gpu.memory_used_bytes, gpu.memory_reserved_bytes) == (4 << 20, 551 << 20)
    assert gpu.memory_free_bytes == (81559 - 551 - 4) << 20
    assert gpu.bar1_total_bytes == 131072 << 20
    assert (gpu.persistence_mode, gpu.compute_mode, gpu.display_active) == (True, 0, False)
    assert (gpu.ecc_mode, gpu.ecc_mode_pending) == (True, True)
    assert (gpu.mig_mode, gpu.mig_mode_pending, gpu.mig_devices) == (False, False, ())
    assert (gpu.gsp_enabled, gpu.gsp_default, gpu.gsp_version) == (True, True, "580.95.05")
    assert gpu.processes == ()
    assert (gpu.utilization_gpu_percent, gpu.utilization_memory_percent) == (0, 0)
    assert (gpu.performance_state, gpu.clock_sm_mhz, gpu.clock_sm_max_mhz) == (0, 345, 1980)
    assert (gpu.clock_memory_mhz, gpu.clock_memory_max_mhz) == (1593, 2619)
    assert gpu.links is not None
    assert gpu.links[17] == GpuLink(
        link=17,
        state=1,
        remote_bdf="0000:c5:00.0",
        remote_type="SWITCH",
        version=6,
        speed_mbps=26562,
    )
    assert (gpu.fabric.state, gpu.fabric.status, gpu.fabric.health_summary) == (3, 0, 1)
    assert (gpu.fabric.cluster, gpu.fabric.spans_nodes) == ("0" * 32, False)
    assert (gpu.pcie.generation, gpu.pcie.max_generation, gpu.pcie.gpu_max_generation) == (5, 5, 5)
    assert (gpu.pcie.width, gpu.pcie.max_width, gpu.pcie.replay_counter) == (16, 16, 0)
    health = gpu.health
    assert health.recovery_action == RecoveryAction.NONE
    assert health.inforom_valid is True
    assert health.event_reasons == EventReason.IDLE
    assert (health.temperature_c, health.temperature_memory_c) == (33, 41)
    assert (health.temperature_slowdown_c, health.temperature_shutdown_c) == (89, 95)
    assert health.temperature_max_c == 87
    assert (health.power_limit_mw, health.power_limit_default_mw) == (700_000, 700_000)
    assert health.power_limit_set_mw == 700_000
    assert (health.power_limit_min_mw, health.power_limit_max_mw) == (200_000, 700_000)


def test_an_ill_gpu(tmp_path: Path) -> None:
    """Every counter gets a value of its own, so that no two can be mixed up."""
    scenario = scenarios.h100_x8()
    ill = scenario["gpus"][2]
    ill["ecc_errors"] = {
        "volatile": {"corrected": 1, "uncorrected": 2, "sram_uncorrected": 3},
        "aggregate": {
            "corrected": 4,
            "uncorrected": 5,
            "sram_uncorrected": 6,
            "sram_corrected": 7,
            "dram_corrected": 8,
        },
    }
    ill["sram_threshold_exceeded"] = 1
    ill["remapped_rows"] = {"corrected": 9, "uncorrected": 10, "pending": 1, "failure": 0}
    ill["retired_pages"] = {"single_bit": 11, "double_bit": 12, "pending": 1}
    ill["repair"] = {"channel_pending": 0, "tpc_pending": 1}
    ill["inforom"] = 14
    ill["event_reasons"] = 0x48
    fields = dict(ill["fields"])
    fields.update({str(field): field for field in range(173, 184)})
    fields.update({"230": 4, "95": 13, "82": 14})
    ill["fields"] = fields
    ill["pcie"]["replay_counter"] = 15
    ill["fabric"] = {
        "state": 2,
        "status": 27,
        "clique": 16,
        "cluster": "5a00" * 8,
        "health_mask": 17,
        "health_summary": 2,
    }

    gpu = gpus(examine(scenario, tmp_path))[2]
    health = gpu.health
    assert (health.ecc_volatile_corrected, health.ecc_volatile_uncorrected) == (1, 2)
    assert (health.sram_volatile_uncorrected, health.sram_aggregate_uncorrected) == (3, 6)
    assert (health.ecc_aggregate_corrected, health.ecc_aggregate_uncorrected) == (4, 5)
    assert (health.sram_aggregate_corrected, health.dram_aggregate_corrected) == (7, 8)
    assert health.sram_threshold_exceeded is True
    assert (health.remapped_rows_corrected, health.remapped_rows_uncorrected) == (9, 10)
    assert (health.remapped_rows_pending, health.remapped_rows_failure) == (True, False)
    assert (health.retired_pages_single_bit, health.retired_pages_double_bit) == (11, 12)
    assert health.retired_pages_pending is True
    assert (health.channel_repair_pending, health.tpc_repair_pending) == (False, True)
    assert health.inforom_valid is False
    assert "health.inforom_valid" not in gpu.unread
    assert health.event_reasons == EventReason.HW_SLOWDOWN | EventReason.HW_THERMAL
    assert health.recovery_action == RecoveryAction.DRAIN_AND_RESET
    assert health.temperature_memory_c == 14
    assert gpu.pcie.replay_counter == 15
    assert gpu.pcie.replay_rollover_counter == 13
    errors = gpu.pcie.errors
    assert [getattr(errors, name) for name in errors.__struct_fields__] == list(range(173, 184))
    fabric = gpu.fabric
    assert (fabric.state, fabric.status, fabric.clique) == (2, 27, 16)
    assert (fabric.health_mask, fabric.health_summary) == (17, 2)
    assert (fabric.cluster, fabric.spans_nodes) == ("5a00" * 8, False)  # not registered yet


def test_the_dead_link_counts_for_its_pairs_only(tmp_path: Path) -> None:
    parsed = examine(scenarios.h100_x8_dead_link(), tmp_path)
    gpu = gpus(parsed)[5]
    assert gpu.links is not None
    assert len(gpu.links) == 18
    assert [link.link for link in gpu.links if not link.active] == [7]
    # The far end of an inactive link is not asked for, so it is not unread either.
    assert [path for path in gpu.unread if path.startswith("links")] == []
    assert {(p.a, p.b): p.nvlinks for p in pairs(parsed) if p.nvlinks != 18} == {
        (min(5, other), max(5, other)): 17 for other in range(8) if other != 5
    }


def test_ancestors_follow_the_sockets(tmp_path: Path) -> None:
    levels = {(p.a, p.b): p.ancestor for p in pairs(examine(scenarios.a100_x8(), tmp_path))}
    assert levels[0, 3] == "NODE"
    assert levels[0, 4] == "SYSTEM"
    assert levels[4, 7] == "NODE"


def test_each_p2p_capability_is_its_own(tmp_path: Path) -> None:
    scenario = scenarios.l40s_x4()
    scenario["p2p"] = {"read": 1, "write": 2, "nvlink": 3}
    pair = pairs(examine(scenario, tmp_path))[0]
    assert pair.p2p_read == "CHIPSET_NOT_SUPPORTED"
    assert pair.p2p_write == "GPU_NOT_SUPPORTED"
    assert pair.p2p_nvlink == "IOH_TOPOLOGY_NOT_SUPPORTED"


def test_a_lost_gpu_leaves_the_others_known(tmp_path: Path) -> None:
    parsed = examine(scenarios.h200_x8_lost(), tmp_path)
    lost = gpus(parsed)[3]
    assert lost.error is not None
    assert (lost.error.code, lost.error.name) == (15, "GPU_IS_LOST")
    assert lost.error.call == "nvmlDeviceGetHandleByIndex"
    assert lost.unread["handle"].code == 15
    assert lost.uuid is None
    assert all(gpu.error is None and gpu.uuid for gpu in gpus(parsed) if gpu.index != 3)
    assert parsed.topology is not None
    pair = parsed.topology.pair(3, 6)
    assert pair is not None
    assert (pair.ancestor, pair.unread["ancestor"].name) == (None, "GPU_IS_LOST")


def test_a_gpu_lost_late_is_asked_only_once(tmp_path: Path) -> None:
    scenario = scenarios.h200_x8_lost_late()
    scenario["log"] = str(tmp_path / "calls.log")
    lost = gpus(examine(scenario, tmp_path))[3]
    assert lost.error is not None
    assert (lost.error.code, lost.error.call) == (15, "nvmlDeviceGetUUID")
    assert lost.unread["health.recovery_action"].code == 15
    calls = (tmp_path / "calls.log").read_text("utf-8").split("\n")
    alone = {"nvmlDeviceGetTopologyCommonAncestor 3", "nvmlDeviceGetP2PStatus 3"}
    assert [call for call in calls if call.endswith(" 3") and call not in alone] == [
        "nvmlDeviceGetHandleByIndex_v2 3",
        "nvmlDeviceGetUUID 3",
    ]


def test_a_gpu_that_needs_a_reset_is_still_read(tmp_path: Path) -> None:
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlDeviceGetUtilizationRates@1": 16}
    gpu = gpus(examine(scenario, tmp_path))[1]
    assert gpu.error is not None
    assert gpu.error.name == "RESET_REQUIRED"
    assert gpu.pcie.width == 16


def test_mig_devices(tmp_path: Path) -> None:
    gpu = gpus(examine(scenarios.a100_mig(), tmp_path))[0]
    assert gpu.mig_devices is not None
    assert [(device.index, device.profile) for device in gpu.mig_devices] == [
        (0, "3g.40gb"),
        (1, "2g.20gb"),
        (3, "1g.10gb"),
    ]
    device = gpu.mig_devices[0]
    assert device.uuid is not None
    assert device.uuid.startswith("MIG-")
    assert (device.memory_total_bytes, device.memory_mib) == (40192 << 20, 40192)
    assert (device.gpu_slices, device.multiprocessors, device.gpu_instance_id) == (3, 42, 1)
    assert gpu.processes is not None
    assert [(process.pid, process.gpu_instance_id) for process in gpu.processes] == [(4711, 1)]
    assert gpu.unread["health.remapped_rows_failure"].name == "NOT_SUPPORTED"


def test_the_profile_is_computed_where_the_name_lacks_it(tmp_path: Path) -> None:
    scenario = scenarios.a100_mig()
    for device in scenario["gpus"][0]["mig_devices"]:
        if device:
            device["name"] = "NVIDIA A100-SXM4-80GB"
    scenario["gpus"][0]["mig_devices"][0]["compute_slices"] = 1
    gpu = gpus(examine(scenario, tmp_path))[0]
    assert gpu.mig_devices is not None
    assert [device.profile for device in gpu.mig_devices] == ["1c.3g.40gb", "2g.20gb", "1g.10gb"]


def test_an_old_driver_is_read_by_its_own_calls(tmp_path: Path) -> None:
    scenario = scenarios.driver_470()
    scenario["gpus"][0]["compute_processes"] = [{"pid": 9, "used_bytes": 1 << 30}]
    parsed = examine(scenario, tmp_path)
    assert parsed.nvml is not None
    assert (parsed.nvml.driver_version, parsed.nvml.cuda_version) == ("470.256.02", 11040)
    gpu = gpus(parsed)[0]
    assert gpu.processes is not None
    assert [process.pid for process in gpu.processes] == [9]
    assert gpu.health.event_reasons == 1
    assert gpu.memory_used_bytes == (620 + 4) << 20
    assert gpu.unread["memory_reserved_bytes"].name == "FUNCTION_NOT_FOUND"
    assert gpu.unread["fabric.state"].name == "FUNCTION_NOT_FOUND"
    assert gpu.unread["health.recovery_action"].name == "NOT_SUPPORTED"


def test_link_speeds_by_the_fields_of_old_drivers(tmp_path: Path) -> None:
    scenario = scenarios.a100_x8()
    for gpu in scenario["gpus"]:
        old = {str(field): 25000 for field in (*range(84, 90), *range(132, 138))}
        gpu["fields"] = {**gpu["fields"], **old, "164": None}
    links = gpus(examine(scenario, tmp_path))[0].links
    assert links is not None
    assert {link.speed_mbps for link in links} == {25000}


def test_links_are_counted_by_trying_where_the_count_is_not_told(tmp_path: Path) -> None:
    scenario = scenarios.v100_x4()
    for gpu in scenario["gpus"]:
        gpu["fields"] = {**gpu["fields"], "91": None}
    links = gpus(examine(scenario, tmp_path))[0].links
    assert links is not None
    assert [link.remote_bdf for link in links] == ["0000:2b:00.0"] * 2 + ["0000:3b:00.0"] * 2 + [
        "0000:4b:00.0"
    ] * 2


def test_one_link_that_does_not_answer_spares_the_others(tmp_path: Path) -> None:
    scenario = scenarios.h100_x8()
    scenario["gpus"][0]["links"][3] = {}
    gpu = gpus(examine(scenario, tmp_path))[0]
    assert gpu.links is not None
    assert len(gpu.links) == 18
    assert (gpu.links[3].state, gpu.unread["links.3.state"].name) == (None, "NOT_SUPPORTED")
    assert len(gpu.active_links) == 17


def test_links_that_are_all_refused_are_unread_as_one(tmp_path: Path) -> None:
    scenario = scenarios.h100_x8()
    scenario["fail"] = {"nvmlDeviceGetNvLinkState@0": 4}
    parsed = examine(scenario, tmp_path)
    gpu = gpus(parsed)[0]
    assert (gpu.links, gpu.unread["links"].name) == (None, "NO_PERMISSION")
    assert parsed.topology is not None
    pair = parsed.topology.pair(0, 1)
    assert pair is not None
    assert (pair.nvlinks, pair.ancestor, pair.label) == (None, "NODE", None)


def test_process_lists_that_this_driver_does_not_have(tmp_path: Path) -> None:
    scenario = scenarios.driver_470()
    scenario["absent"] = [*scenario["absent"], "nvmlDeviceGetComputeRunningProcesses_v2"]
    gpu = gpus(examine(scenario, tmp_path))[0]
    assert gpu.processes is None
    assert gpu.unread["processes"].name == "FUNCTION_NOT_FOUND"


def test_wsl_tells_little_and_nothing_breaks(tmp_path: Path) -> None:
    gpu = gpus(examine(scenarios.wsl(), tmp_path))[0]
    assert gpu.error is None
    assert (gpu.processes, gpu.minor_number, gpu.cpu_affinity) == (None, None, None)
    assert gpu.unread["processes"].name == "NOT_SUPPORTED"
    assert gpu.pcie.max_generation == 4


def test_codes_of_the_future_get_names(tmp_path: Path) -> None:
    gpu = gpus(examine(scenarios.driver_999(), tmp_path))[0]
    assert (gpu.brand, gpu.architecture) == ("UNKNOWN_40", "UNKNOWN_40")
    assert gpu.unread["health.remapped_rows_pending"].name == "ERROR_77"
    assert (gpu.fabric.state, gpu.health.recovery_action) == (9, 12)
    assert gpu.links is not None
    assert len(gpu.links) == 36
    assert gpu.active_links == ()


def test_no_answer_about_processes_is_not_an_empty_list(tmp_path: Path) -> None:
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlDeviceGetComputeRunningProcesses_v3@1": 4}
    first, second, *_ = gpus(examine(scenario, tmp_path))
    assert first.processes == ()
    assert second.processes is None
    assert second.unread["processes"].name == "NO_PERMISSION"


def test_deep_reads_link_errors(tmp_path: Path) -> None:
    scenario = scenarios.rtx_3090_x2_nvlink()
    link = scenario["gpus"][1]["links"][2]
    link["errors"] = {"replay": 1, "recovery": 2, "crc_flit": 3, "crc_data": 4}
    shallow = gpus(examine(copy.deepcopy(scenario), tmp_path))[1].links
    deep = gpus(examine(scenario, tmp_path, "--deep-ok"))[1].links
    assert shallow is not None
    assert deep is not None
    assert shallow[2].errors_replay is None
    read = (deep[2].errors_replay, deep[2].errors_recovery, deep[2].errors_crc_flit)
    assert read == (1, 2, 3)
    assert deep[2].errors_crc_data == 4


@pytest.mark.parametrize(
    ("code", "name"),
    [(4, "NO_PERMISSION"), (9, "DRIVER_NOT_LOADED"), (18, "LIB_RM_VERSION_MISMATCH")],
)
def test_nvml_does_not_start(tmp_path: Path, code: int, name: str) -> None:
    parsed = examine({"gpus": [], "fail": {"nvmlInit": code}}, tmp_path)
    assert parsed.nvml is not None
    assert parsed.nvml.error is not None
    assert (parsed.nvml.error.code, parsed.nvml.error.name) == (code, name)
    assert (parsed.nvml.error.call, bool(parsed.nvml.error.message)) == ("nvmlInit", True)
    assert (parsed.gpus, parsed.topology) == (None, None)


def test_no_library(tmp_path: Path) -> None:
    (tmp_path / "libnvidia-ml.so.1").write_text("this is no library", "utf-8")
    environment = {**os.environ, "LD_LIBRARY_PATH": str(tmp_path)}
    result = subprocess.run(
        [sys.executable, str(CHILD)], env=environment, capture_output=True, text=True, check=True
    )
    parsed = parse(decode(result.stdout))
    assert parsed.nvml is not None
    assert parsed.nvml.error is not None
    assert (parsed.nvml.error.code, parsed.nvml.error.name) == (12, "LIBRARY_NOT_FOUND")


def test_counting_fails_after_the_versions_are_known(tmp_path: Path) -> None:
    scenario = scenarios.l40s_x4()
    scenario["fail"] = {"nvmlDeviceGetCount_v2": 999}
    parsed = examine(scenario, tmp_path)
    assert parsed.nvml is not None
    assert parsed.nvml.error is not None
    assert (parsed.nvml.error.name, parsed.nvml.driver_version) == ("UNKNOWN", "580.95.05")
    assert parsed.gpus is None


def test_a_machine_without_gpus(tmp_path: Path) -> None:
    parsed = examine({"driver": "580.95.05", "nvml": "13", "cuda": 13000, "gpus": []}, tmp_path)
    assert gpus(parsed) == ()
    assert pairs(parsed) == ()


@pytest.mark.parametrize("content", [None, "", "raise RuntimeError('boom')", "1 +"])
def test_pynvml_cannot_be_imported(tmp_path: Path, content: str | None) -> None:
    command = [sys.executable, "-S", "-s", str(CHILD)]
    environment = {"PATH": os.environ["PATH"]}
    if content is not None:
        (tmp_path / "pynvml.py").write_text(content, "utf-8")
        environment["PYTHONPATH"] = str(tmp_path)
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    parsed = parse(decode(result.stdout))
    assert parsed.nvml is not None
    assert parsed.nvml.error is not None
    assert (parsed.nvml.error.code, parsed.nvml.error.name) == (None, "PYNVML_IMPORT")
    assert parsed.nvml.error.call == "import pynvml"
    assert parsed.stopped_at is None


def cut_off(scenario: Scenario, folder: Path, known: str) -> ParsedNvml:
    """Run the child until it announces the step `known`, then kill it."""
    process = subprocess.Popen(
        [sys.executable, str(CHILD)],
        env={**os.environ, **fakenvml.environment(scenario, folder)},
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    # A child that never announces the step must not hold up the tests for as long as it hangs.
    watchdog = threading.Timer(200, process.kill)
    watchdog.start()
    lines = []
    for line in process.stdout:
        lines.append(line)
        if f'"{known}"' in line:
            break
    watchdog.cancel()
    process.kill()
    rest, _ = process.communicate(timeout=200)
    assert (lines[-1:], rest) == ([f'{SENTINEL}{{"step":"{known}"}}\n'], "")
    return parse(decode("".join(lines)))


@pytest.mark.parametrize(
    "call",
    ["nvmlDeviceGetUUID", "nvmlDeviceGetFieldValues", "nvmlDeviceGetNvLinkState"],
)
def test_a_hang_leaves_what_was_read_before(tmp_path: Path, call: str) -> None:
    scenario = scenarios.h200_x8()
    scenario["hang"] = {f"{call}@3": 600}
    parsed = cut_off(scenario, tmp_path, f"gpu 3: {call}")
    assert parsed.stopped_at == f"gpu 3: {call}"
    assert parsed.gpus is not None
    assert [gpu.index for gpu in parsed.gpus.gpus] == [0, 1, 2]
    assert (parsed.gpus.count, parsed.gpus.stopped_at) == (8, f"gpu 3: {call}")
    assert parsed.topology is None
    assert parsed.nvml is not None
    assert parsed.nvml.driver_version == "580.95.05"


def test_a_hang_at_the_start_names_it(tmp_path: Path) -> None:
    parsed = cut_off({"gpus": [], "hang": {"nvmlInit": 600}}, tmp_path, "nvmlInit")
    assert (parsed.stopped_at, parsed.nvml, parsed.gpus) == ("nvmlInit", None, None)


def test_a_hang_among_the_pairs_keeps_all_gpus(tmp_path: Path) -> None:
    scenario = scenarios.l40s_x4()
    scenario["hang"] = {"nvmlDeviceGetP2PStatus@2": 600}
    parsed = cut_off(scenario, tmp_path, "gpu 2: nvmlDeviceGetP2PStatus")
    assert parsed.gpus is not None
    assert len(parsed.gpus.gpus) == 4
    assert parsed.gpus.stopped_at == "gpu 2: nvmlDeviceGetP2PStatus"


def test_every_call_that_may_hang_is_announced(tmp_path: Path) -> None:
    """The log of the library, less the spelling, is the sequence of steps."""
    scenario = scenarios.v100_x4()
    scenario["log"] = str(tmp_path / "calls.log")
    records = run(scenario, tmp_path)
    steps = [record["step"] for record in records if "step" in record][2:]
    calls: list[str] = []
    for line in (tmp_path / "calls.log").read_text("utf-8").splitlines()[2:]:
        function, _, gpu = line.partition(" ")
        call = (f"gpu {gpu}: " if gpu else "") + function
        if not calls or calls[-1] != call:
            calls.append(call)

    def plain(names: list[str]) -> list[str]:
        bare = [re.sub(r"_v\d$", "", name) for name in names]
        return [name for i, name in enumerate(bare) if i == 0 or name != bare[i - 1]]

    assert plain(steps) == plain(calls)


def test_nothing_is_changed_on_the_machine(tmp_path: Path) -> None:
    scenario = scenarios.h100_x8()
    scenario["log"] = str(tmp_path / "calls.log")
    run(scenario, tmp_path, "--deep-ok")
    called = {line.split()[0] for line in (tmp_path / "calls.log").read_text("utf-8").splitlines()}
    reading = re.compile(r"nvml(Init|InitWithFlags|(System|Device)Get\w+|DeviceValidateInforom)")
    assert [name for name in called if not reading.fullmatch(name)] == []
    text = CHILD.read_text("utf-8")
    asked = set(re.findall(r'"(nvml[A-Z]\w+)"', text))
    assert [name for name in asked if re.search("Set|Register|Reset|Clear|Create", name)] == []


def test_serial_numbers_are_not_asked_for(tmp_path: Path) -> None:
    output = json.dumps(run(scenarios.a100_x8(), tmp_path))
    assert "1650322000000" not in output
    assert "Serial" not in output


def test_records_are_single_lines_of_ascii(tmp_path: Path) -> None:
    scenario = scenarios.rtx_4090_x1()
    scenario["gpus"][0]["name"] = "NVIDIA \u00e9\u2028"
    environment = {**os.environ, **fakenvml.environment(scenario, tmp_path)}
    result = subprocess.run(
        [sys.executable, str(CHILD)], env=environment, capture_output=True, check=True
    )
    lines = result.stdout.split(b"\n")
    assert lines.pop() == b""
    assert all(line.startswith(SENTINEL.encode()) and line.isascii() for line in lines)
    assert gpus(parse(decode(result.stdout.decode())))[0].name == "NVIDIA \u00e9\u2028"


def test_bytes_that_are_no_text_spare_the_other_values(tmp_path: Path) -> None:
    scenario = scenarios.rtx_4090_x1()
    environment = {**os.environ, **fakenvml.environment(scenario, tmp_path)}
    path = tmp_path / "fake_nvml.conf"
    path.write_bytes(path.read_bytes().replace(b"NVIDIA GeForce RTX 4090", b"NVIDIA \xff"))
    result = subprocess.run(
        [sys.executable, str(CHILD)], env=environment, capture_output=True, text=True, check=True
    )
    gpu = gpus(parse(decode(result.stdout)))[0]
    assert (gpu.name, gpu.unread["name"].code) == (None, None)
    assert gpu.unread["name"].name == "UnicodeDecodeError"
    assert gpu.cc == (8, 9)


def test_eight_gpus_are_quick(tmp_path: Path) -> None:
    environment = fakenvml.environment(scenarios.h100_x8(), tmp_path)
    before = os.times()
    subprocess.run(
        [sys.executable, str(CHILD)],
        env={**os.environ, **environment},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    after = os.times()
    # 0.1 s of computing; other programs may share the processors
    spent = after.children_user + after.children_system
    assert spent - before.children_user - before.children_system < 3


def test_the_child_keeps_to_python_3_8_and_to_its_imports() -> None:
    tree = ast.parse(CHILD.read_text("utf-8"), feature_version=(3, 8))
    imported = {
        name
        for node in ast.walk(tree)
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }
    assert imported <= {
        "__future__",
        "ctypes",
        "importlib",
        "json",
        "os",
        "sys",
        "types",
        "typing",
    }


def test_python_3_8_writes_the_same_records(tmp_path: Path) -> None:
    oldest = shutil.which("python3.8")
    if oldest is None or subprocess.run([oldest, "-V"], check=False).returncode != 0:
        pytest.skip("no Python 3.8 on PATH")
    module = importlib.util.find_spec("pynvml")
    assert module is not None
    assert module.origin is not None
    (tmp_path / "path").mkdir()
    shutil.copy(module.origin, tmp_path / "path")
    scenario = scenarios.driver_470()
    environment = {**os.environ, **fakenvml.environment(scenario, tmp_path)}
    result = subprocess.run(
        [oldest, str(CHILD), "--deep-ok"],
        env={**environment, "PYTHONPATH": str(tmp_path / "path")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert decode(result.stdout) == run(scenario, tmp_path, "--deep-ok")


# ---- the parser alone --------------------------------------------------------------------------


def test_no_records_at_all() -> None:
    parsed = parse([])
    assert parsed == ParsedNvml(stopped_at="start")


def test_a_malformed_record_spoils_only_itself() -> None:
    parsed = parse(
        [
            {"step": "x"},
            {"fact": "gpu_count", "value": 2},
            {"fact": "gpu", "value": {"index": "zero"}},
            {"fact": "gpu", "value": {"index": 1, "name": "a"}},
            {"fact": "driver", "value": None},
            {"fact": "a fact of the future", "value": 1},
            {"colour": "red"},
            {"done": True},
        ]
    )
    assert parsed.gpus is not None
    assert [gpu.name for gpu in parsed.gpus.gpus] == ["a"]
    assert [text.split(":")[0] for text in parsed.malformed] == ["gpu", "driver"]
    assert parsed.stopped_at is None


def test_links_are_counted_from_the_poorer_side() -> None:
    def gpu(index: int, remotes: list[str | None], kind: str | None = "GPU") -> Gpu:
        links = tuple(
            GpuLink(link=i, state=1, remote_bdf=remote, remote_type=kind)
            for i, remote in enumerate(remotes)
        )
        return Gpu(index=index, pci_bdf=f"bdf{index}", links=links)

    assert count_nvlinks(gpu(0, ["bdf1", "bdf1", "bdf2"]), gpu(1, ["bdf0", "bdf0"])) == 2
    assert count_nvlinks(gpu(0, ["bdf1", "bdf1"]), gpu(1, ["bdf0"])) == 1
    assert count_nvlinks(gpu(0, ["bdf2"]), gpu(1, ["bdf2"])) == 0
    assert count_nvlinks(gpu(0, ["s"] * 18, "SWITCH"), gpu(1, ["s"] * 17, "SWITCH")) == 17
    assert count_nvlinks(gpu(0, ["s"], "SWITCH"), Gpu(index=1)) is None
    # A link whose far end is not known may lead here.
    assert count_nvlinks(gpu(0, ["s"], None), gpu(1, ["s"], "SWITCH")) is None
    assert count_nvlinks(gpu(0, ["s"], "UNKNOWN_9"), gpu(1, ["s"], "SWITCH")) is None
    assert count_nvlinks(gpu(0, ["bdf1", None]), gpu(1, ["bdf0"])) is None
    assert count_nvlinks(gpu(0, ["bdf1"], None), gpu(1, ["bdf0"], None)) == 1
    unread = Gpu(index=1, links=(GpuLink(link=0, state=None),))
    assert count_nvlinks(gpu(0, []), unread) is None
