"""The fake library, asked through the real pynvml in a child process, answers as NVML does.

Over 400 lines because each function of NVML that is imitated has its own test.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from tests.nvml import fakenvml, scenarios
from tests.nvml.fakenvml import Gpu, Scenario

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(
    fakenvml.find_compiler() is None, reason="the fake NVML needs a C compiler"
)

# `ask` turns every answer, exceptions included, into something that JSON can carry.
PRELUDE = """
import json
import pynvml as n
def plain(value):
    if isinstance(value, (int, float, str, type(None))): return value
    if isinstance(value, bytes): return value.decode()
    if isinstance(value, (list, tuple)): return [plain(item) for item in value]
    if hasattr(value, "_fields_"):
        return {field[0]: plain(getattr(value, field[0])) for field in value._fields_}
    if hasattr(value, "_length_"): return [plain(item) for item in value]
    if hasattr(value, "value"): return value.value
    return plain(vars(value)) if not isinstance(value, dict) else value
def ask(function, *args):
    try: return plain(getattr(n, function)(*args))
    except n.NVMLError as error: return {"error": error.value}
    except n.NVMLLibraryMismatchError as error: return type(error).__name__
def field(handle, *ids):
    out = []
    for value in n.nvmlDeviceGetFieldValues(handle, list(ids)):
        out.append({"error": value.nvmlReturn} if value.nvmlReturn else
                   [value.valueType, value.value.dVal if value.valueType == 0 else
                    value.value.sllVal if value.valueType == 4 else value.value.ullVal])
    return out
"""
START = "n.nvmlInit(); g = [n.nvmlDeviceGetHandleByIndex(i) for i in range(n.nvmlDeviceGetCount())]"


def child(folder: Path, code: str) -> list[str]:
    """Return the command that runs `code`."""
    (folder / "code.py").write_text(PRELUDE + code, "utf-8")
    return [sys.executable, str(folder / "code.py")]


def ask(scenario: Scenario, folder: Path, *expressions: str, start: str = START) -> list[Any]:
    """Evaluate expressions in a child that sees `scenario`, and return their values."""
    code = f"{start}\nprint(json.dumps([{', '.join(expressions)}]))\n"
    result = subprocess.run(
        child(folder, code),
        env={**os.environ, **fakenvml.environment(scenario, folder)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert result.returncode == 0, result.stderr
    values: list[Any] = json.loads(result.stdout)
    return values


def one(gpu: Gpu) -> Scenario:
    """Return a machine with one GPU."""
    return {"driver": "1.2", "gpus": [gpu]}


NOT_SUPPORTED = {"error": 3}


def test_system_versions(tmp_path: Path) -> None:
    scenario: Scenario = {"driver": "580.95.05", "nvml": "13.580.95.05", "cuda": 13000, "gpus": []}
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlSystemGetDriverVersion")',
        'ask("nvmlSystemGetNVMLVersion")',
        'ask("nvmlSystemGetCudaDriverVersion")',
        'ask("nvmlSystemGetCudaDriverVersion_v2")',
        'ask("nvmlDeviceGetCount")',
    ) == ["580.95.05", "13.580.95.05", 13000, 13000, 0]


def test_what_the_scenario_does_not_say_is_not_supported(tmp_path: Path) -> None:
    getters = sorted(
        name
        for name in fakenvml.exported()
        if name.startswith("nvmlDeviceGet") and name.endswith(("Mode", "State", "Rows", "Limit"))
    )
    questions = [f"ask({name!r}, g[0])" for name in getters if name != "nvmlDeviceGetNvLinkState"]
    answers = ask(one(Gpu()), tmp_path, *questions)
    assert len(answers) > 10
    assert answers == [NOT_SUPPORTED] * len(answers)


def test_identity(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            name="NVIDIA H200",
            uuid="GPU-1",
            serial="165",
            vbios="96.00",
            brand=14,
            architecture=9,
            minor_number=4,
            multi_gpu_board=0,
            cc_major=9,
            cc_minor=0,
            pci_bus_id="00000001:AB:00.0",
            pci_device_id=0x233510DE,
            pci_subsystem_id=0x18BE10DE,
        )
    )
    *plain, pci = ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetName", g[0])',
        'ask("nvmlDeviceGetUUID", g[0])',
        'ask("nvmlDeviceGetSerial", g[0])',
        'ask("nvmlDeviceGetVbiosVersion", g[0])',
        'ask("nvmlDeviceGetBrand", g[0])',
        'ask("nvmlDeviceGetArchitecture", g[0])',
        'ask("nvmlDeviceGetMinorNumber", g[0])',
        'ask("nvmlDeviceGetMultiGpuBoard", g[0])',
        'ask("nvmlDeviceGetCudaComputeCapability", g[0])',
        'ask("nvmlDeviceGetIndex", n.nvmlDeviceGetHandleByUUID("GPU-1"))',
        'ask("nvmlDeviceGetIndex", n.nvmlDeviceGetHandleByPciBusId("00000001:ab:00.0"))',
        'ask("nvmlDeviceGetHandleByUUID", "GPU-2")',
        'ask("nvmlDeviceGetHandleByIndex", 1)',
        'ask("nvmlDeviceGetPciInfo", g[0])',
    )
    assert plain == [
        "NVIDIA H200", "GPU-1", "165", "96.00", 14, 9, 4, 0, [9, 0], 0, 0,
        {"error": 6}, {"error": 2},
    ]  # fmt: skip
    assert pci == {
        "busIdLegacy": "0001:AB:00.0",
        "domain": 1,
        "bus": 0xAB,
        "device": 0,
        "pciDeviceId": 0x233510DE,
        "pciSubSystemId": 0x18BE10DE,
        "busId": "00000001:AB:00.0",
    }


def test_memory_in_both_versions(tmp_path: Path) -> None:
    scenario = one(
        Gpu(memory_total=1000, memory_reserved=100, memory_used=50, bar1_total=64, bar1_used=4)
    )
    first, second, bar1 = ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetMemoryInfo", g[0])',
        'ask("nvmlDeviceGetMemoryInfo", g[0], n.nvmlMemory_v2)',
        'ask("nvmlDeviceGetBAR1MemoryInfo", g[0])',
    )
    assert first == {"total": 1000, "free": 850, "used": 150}
    del second["version"]
    assert second == {"total": 1000, "reserved": 100, "free": 850, "used": 50}
    assert bar1 == {"bar1Total": 64, "bar1Free": 60, "bar1Used": 4}


def test_modes(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            persistence_mode=1,
            compute_mode=3,
            display_mode=1,
            display_active=0,
            virtualization_mode=1,
            ecc_mode={"current": 0, "pending": 1},
            mig_mode={"current": 1, "pending": 0},
            gsp_firmware={"enabled": 1, "default": 0, "version": "580.1"},
        )
    )
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetPersistenceMode", g[0])',
        'ask("nvmlDeviceGetComputeMode", g[0])',
        'ask("nvmlDeviceGetDisplayMode", g[0])',
        'ask("nvmlDeviceGetDisplayActive", g[0])',
        'ask("nvmlDeviceGetVirtualizationMode", g[0])',
        'ask("nvmlDeviceGetEccMode", g[0])',
        'ask("nvmlDeviceGetMigMode", g[0])',
        'ask("nvmlDeviceGetGspFirmwareMode", g[0])',
        'ask("nvmlDeviceGetGspFirmwareVersion", g[0])',
    ) == [1, 3, 1, 0, 1, [0, 1], [1, 0], [1, 0], "580.1"]


def test_mig_devices(tmp_path: Path) -> None:
    attributes, *plain = ask(
        scenarios.a100_mig(),
        tmp_path,
        'ask("nvmlDeviceGetAttributes", m)',
        'ask("nvmlDeviceGetMaxMigDeviceCount", g[0])',
        'ask("nvmlDeviceGetMigDeviceHandleByIndex", g[0], 2)',
        'ask("nvmlDeviceGetMigDeviceHandleByIndex", g[0], 7)',
        'ask("nvmlDeviceGetName", m)',
        'ask("nvmlDeviceGetUUID", m)[:4]',
        'ask("nvmlDeviceGetMemoryInfo", m)["total"] >> 20',
        'ask("nvmlDeviceGetGpuInstanceId", m)',
        'ask("nvmlDeviceGetComputeInstanceId", m)',
        'ask("nvmlDeviceIsMigDeviceHandle", m)',
        'ask("nvmlDeviceIsMigDeviceHandle", g[0])',
        'ask("nvmlDeviceGetUUID", n.nvmlDeviceGetDeviceHandleFromMigDeviceHandle(m))[:4]',
        'ask("nvmlDeviceGetPersistenceMode", m)',
        start=START + "; m = n.nvmlDeviceGetMigDeviceHandleByIndex(g[0], 1)",
    )
    assert plain == [
        7, {"error": 6}, {"error": 2}, "NVIDIA A100-SXM4-80GB MIG 2g.20gb", "MIG-", 19968, 5, 0,
        1, 0, "GPU-", NOT_SUPPORTED,
    ]  # fmt: skip
    assert (attributes["gpuInstanceSliceCount"], attributes["multiprocessorCount"]) == (2, 28)
    assert attributes["memorySizeMB"] == 19968


def test_processes_and_load(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            compute_processes=[
                {"pid": 7, "used_bytes": 1 << 33},
                {"pid": 8, "gpu_instance_id": 3, "compute_instance_id": 0},
            ],
            graphics_processes=[],
            utilization={"gpu": 90, "memory": 40},
            performance_state=2,
            clocks_mhz={"current": {"sm": 345}, "max": {"sm": 1980, "memory": 2619}},
        )
    )
    compute, older, *plain = ask(
        scenario,
        tmp_path,
        "[vars(p) for p in n.nvmlDeviceGetComputeRunningProcesses(g[0])]",
        "[vars(p) for p in n.nvmlDeviceGetComputeRunningProcesses_v2(g[0])]",
        'ask("nvmlDeviceGetGraphicsRunningProcesses", g[0])',
        'ask("nvmlDeviceGetMPSComputeRunningProcesses", g[0])',
        'ask("nvmlDeviceGetUtilizationRates", g[0])',
        'ask("nvmlDeviceGetPerformanceState", g[0])',
        'ask("nvmlDeviceGetClockInfo", g[0], n.NVML_CLOCK_SM)',
        'ask("nvmlDeviceGetMaxClockInfo", g[0], n.NVML_CLOCK_MEM)',
        'ask("nvmlDeviceGetClockInfo", g[0], n.NVML_CLOCK_MEM)',
    )  # fmt: skip
    assert compute == older
    assert compute == [
        {
            "pid": 7,
            "usedGpuMemory": 1 << 33,
            "gpuInstanceId": 0xFFFFFFFF,
            "computeInstanceId": 0xFFFFFFFF,
        },
        {"pid": 8, "usedGpuMemory": None, "gpuInstanceId": 3, "computeInstanceId": 0},
    ]
    assert plain == [
        [], NOT_SUPPORTED, {"gpu": 90, "memory": 40}, 2, 345, 2619, NOT_SUPPORTED,
    ]  # fmt: skip


def test_memory_errors(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            ecc_errors={
                "volatile": {"corrected": 1, "uncorrected": 2},
                "aggregate": {"corrected": 3, "uncorrected": 4, "sram_uncorrected": 5},
            },
            sram_threshold_exceeded=1,
            remapped_rows={"corrected": 1, "uncorrected": 2, "pending": 1, "failure": 0},
            retired_pages={"single_bit": 2, "double_bit": 0, "pending": 1},
            repair={"channel_pending": 1, "tpc_pending": 0},
            inforom=14,
        )
    )
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetTotalEccErrors", g[0], 0, 0)',
        'ask("nvmlDeviceGetTotalEccErrors", g[0], 1, 0)',
        'ask("nvmlDeviceGetTotalEccErrors", g[0], 0, 1)',
        'ask("nvmlDeviceGetTotalEccErrors", g[0], 1, 1)',
        'ask("nvmlDeviceGetMemoryErrorCounter", g[0], 1, 1, n.NVML_MEMORY_LOCATION_SRAM)',
        'ask("nvmlDeviceGetMemoryErrorCounter", g[0], 1, 0, n.NVML_MEMORY_LOCATION_SRAM)',
        'ask("nvmlDeviceGetSramEccErrorStatus", g[0], ctypes.byref(s)) or s.bThresholdExceeded',
        'ask("nvmlDeviceGetRemappedRows", g[0])',
        "len(n.nvmlDeviceGetRetiredPages(g[0], 0))",
        "len(n.nvmlDeviceGetRetiredPages(g[0], 1))",
        'ask("nvmlDeviceGetRetiredPagesPendingStatus", g[0])',
        'ask("nvmlDeviceGetRepairStatus", g[0])',
        'ask("nvmlDeviceValidateInforom", g[0])',
        start=START + "; import ctypes; s = n.c_nvmlEccSramErrorStatus_v1_t()",
    ) == [
        1, 2, 3, 4, 5, NOT_SUPPORTED, 1, [1, 2, 1, 0], 2, 0, 1, [1, 0], {"error": 14},
    ]  # fmt: skip


def test_heat_and_power(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            event_reasons=1 << 40 | 8,
            temperature_c=61,
            temperature_threshold_c={"shutdown": 95, "slowdown": 89, "gpu_max": 87},
            power_mw={
                "usage": 690_000,
                "enforced": 500_000,
                "default": 700_000,
                "min": 200_000,
                "max": 700_000,
            },
            inforom=0,
        )
    )
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetCurrentClocksEventReasons", g[0])',
        'ask("nvmlDeviceGetCurrentClocksThrottleReasons", g[0])',
        'ask("nvmlDeviceGetTemperature", g[0], 0)',
        'ask("nvmlDeviceGetTemperatureV", g[0], 0)',
        '[ask("nvmlDeviceGetTemperatureThreshold", g[0], kind) for kind in range(4)]',
        'ask("nvmlDeviceGetPowerUsage", g[0])',
        'ask("nvmlDeviceGetEnforcedPowerLimit", g[0])',
        'ask("nvmlDeviceGetPowerManagementDefaultLimit", g[0])',
        'ask("nvmlDeviceGetPowerManagementLimitConstraints", g[0])',
        'ask("nvmlDeviceValidateInforom", g[0])',
    ) == [
        1 << 40 | 8, 1 << 40 | 8, 61, 61, [95, 89, NOT_SUPPORTED, 87], 690_000, 500_000, 700_000,
        [200_000, 700_000], None,
    ]  # fmt: skip


def test_pcie_and_affinity(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            pcie={
                "generation": 1,
                "max_generation": 4,
                "gpu_max_generation": 5,
                "width": 8,
                "max_width": 16,
                "replay_counter": 6,
            },
            cpu_affinity="0,2-3,64",
            memory_affinity="1",
            gpu_numa_node=2,
        )
    )
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetCurrPcieLinkGeneration", g[0])',
        'ask("nvmlDeviceGetMaxPcieLinkGeneration", g[0])',
        'ask("nvmlDeviceGetGpuMaxPcieLinkGeneration", g[0])',
        'ask("nvmlDeviceGetCurrPcieLinkWidth", g[0])',
        'ask("nvmlDeviceGetMaxPcieLinkWidth", g[0])',
        'ask("nvmlDeviceGetPcieReplayCounter", g[0])',
        "list(n.nvmlDeviceGetCpuAffinity(g[0], 2))",
        'ask("nvmlDeviceGetCpuAffinity", g[0], 1)',
        "list(n.nvmlDeviceGetMemoryAffinity(g[0], 1, 0))",
        'ask("nvmlDeviceGetNumaNodeId", g[0])',
    ) == [1, 4, 5, 8, 16, 6, [0b1101, 1], {"error": 7}, [2], 2]  # fmt: skip


def test_field_values_of_every_kind(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            fields={
                "230": 1,
                "94": 1 << 40,
                "82": -3,
                "500": 1.5,
                "173": "!15",
                "164": {"0": 26562, "3": 26000},
                "91": None,
            }
        )
    )
    ids = "230, 94, 82, 500, 173, (164, 0), (164, 3), (164, 1), 91, 31"
    (values,) = ask(scenario, tmp_path, f"field(g[0], {ids})")
    assert values == [
        [1, 1], [3, 1 << 40], [4, -3], [0, 1.5], {"error": 15}, [1, 26562], [1, 26000],
        NOT_SUPPORTED, NOT_SUPPORTED, NOT_SUPPORTED,
    ]  # fmt: skip


def test_links(tmp_path: Path) -> None:
    scenario = one(
        Gpu(
            links=[
                {
                    "state": 1,
                    "remote_bdf": "00000000:C4:00.0",
                    "remote_type": 2,
                    "version": 6,
                    "speed_mbps": 26562,
                    "errors": {"replay": 9, "crc_data": 2},
                },
                {"state": 0},
            ]
        )
    )
    assert ask(
        scenario,
        tmp_path,
        '[ask("nvmlDeviceGetNvLinkState", g[0], link) for link in range(3)]',
        "n.nvmlDeviceGetNvLinkRemotePciInfo(g[0], 0).busId",
        'ask("nvmlDeviceGetNvLinkRemotePciInfo", g[0], 1)',
        'ask("nvmlDeviceGetNvLinkRemoteDeviceType", g[0], 0)',
        'ask("nvmlDeviceGetNvLinkVersion", g[0], 0)',
        '[ask("nvmlDeviceGetNvLinkErrorCounter", g[0], 0, counter) for counter in range(4)]',
        "field(g[0], 91, (164, 0), (165, 0), (165, 1))",
    ) == [
        [1, 0, {"error": 2}], "00000000:C4:00.0", NOT_SUPPORTED, 2, 6,
        [9, NOT_SUPPORTED, NOT_SUPPORTED, 2], [[1, 2], [1, 26562], [1, 1], [1, 0]],
    ]  # fmt: skip


def test_topology_and_p2p(tmp_path: Path) -> None:
    scenario: Scenario = {
        "gpus": [{}, {}, {}],
        "topology": [[0, 10, 50], [10, 0, 40], [50, 40, 0]],
        "p2p": {"read": [[0, 0, 1], [0, 0, 5], [1, 5, 0]], "write": 4},
        "fail": {"*@2": 15, "nvmlDeviceGetHandleByIndex_v2@2": 0},
    }
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetTopologyCommonAncestor", g[0], g[1])',
        'ask("nvmlDeviceGetTopologyCommonAncestor", g[0], g[2])',
        'ask("nvmlDeviceGetTopologyCommonAncestor", g[2], g[1])',
        'ask("nvmlDeviceGetP2PStatus", g[0], g[1], 0)',
        'ask("nvmlDeviceGetP2PStatus", g[0], g[1], 1)',
        'ask("nvmlDeviceGetP2PStatus", g[0], g[1], 2)',
        'ask("nvmlDeviceGetP2PStatus", g[0], g[2], 0)',
    ) == [10, {"error": 15}, {"error": 15}, 0, 4, NOT_SUPPORTED, {"error": 15}]
    del scenario["fail"]
    assert ask(
        scenario,
        tmp_path,
        'ask("nvmlDeviceGetTopologyCommonAncestor", g[1], g[2])',
        'ask("nvmlDeviceGetP2PStatus", g[2], g[1], 0)',
    ) == [40, 5]


@pytest.mark.parametrize("newest", [2, 3])
def test_fabric(tmp_path: Path, newest: int) -> None:
    scenario = one(
        Gpu(
            fabric={
                "state": 3,
                "status": 0,
                "clique": 4,
                "cluster": "00ff" * 8,
                "health_mask": 0x2AA,
                "health_summary": 2,
                "newest_version": newest,
            }
        )
    )
    third, second, legacy = ask(
        scenario,
        tmp_path,
        '[ask("nvmlDeviceGetGpuFabricInfoV", g[0], ctypes.byref(v3)), plain(v3)]',
        '[ask("nvmlDeviceGetGpuFabricInfoV", g[0], ctypes.byref(v2)), plain(v2)]',
        '[ask("nvmlDeviceGetGpuFabricInfo", g[0], ctypes.byref(v1)), plain(v1)]',
        start=START
        + "; import ctypes; v1, v2, v3 = n.c_nvmlGpuFabricInfo_t(), "
        + "n.c_nvmlGpuFabricInfo_v2_t(), n.c_nvmlGpuFabricInfo_v3_t()",
    )
    if newest == 3:
        assert third[0] == 0
        assert (third[1]["state"], third[1]["cliqueId"]) == (3, 4)
        assert (third[1]["healthMask"], third[1]["healthSummary"]) == (0x2AA, 2)
    else:
        assert third[0] == {"error": 25}
    assert (second[1]["state"], second[1]["healthMask"]) == (3, 0x2AA)
    assert (legacy[1]["state"], legacy[1]["cliqueId"]) == (3, 4)
    assert second[1]["clusterUuid"] == legacy[1]["clusterUuid"] == [0, 255] * 8


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [
        pytest.param(Gpu(), [0, 0, 0], id="none is needed"),
        pytest.param(Gpu(licensed=0), [1, 1, 0], id="not held"),
        pytest.param(Gpu(licensed=1), [1, 1, 1], id="held"),
    ],
)
def test_licenses(gpu: Gpu, expected: list[int], tmp_path: Path) -> None:
    assert ask(
        one(gpu),
        tmp_path,
        "[f.isGridLicenseSupported, f.licensableFeaturesCount,"
        " f.gridLicensableFeatures[0].featureState]",
        start=START + "; f = n.nvmlDeviceGetGridLicensableFeatures(g[0])",
    ) == [expected]


@pytest.mark.parametrize("code", [4, 9, 12, 18, 999])
def test_init_fails(tmp_path: Path, code: int) -> None:
    scenario: Scenario = {"gpus": [], "fail": {"nvmlInit": code}}
    assert ask(
        scenario, tmp_path, 'ask("nvmlInit")', 'ask("nvmlDeviceGetCount")', start=""
    ) == [{"error": code}, {"error": 1}]  # fmt: skip


def test_failures_by_call_and_gpu_and_their_precedence(tmp_path: Path) -> None:
    scenario: Scenario = {
        "gpus": [{"name": "a", "uuid": "u"} for _ in range(4)],
        "fail": {
            "nvmlDeviceGetName": 4,
            "nvmlDeviceGetName@1": 16,
            "*@2": 15,
            "nvmlDeviceGetUUID@2": 0,
            "nvmlDeviceGetHandleByIndex_v2@2": 0,
        },
    }
    assert ask(
        scenario,
        tmp_path,
        '[ask("nvmlDeviceGetName", h) for h in g]',
        '[ask("nvmlDeviceGetUUID", h) for h in g]',
        '[ask("nvmlDeviceGetBrand", h) for h in g]',
    ) == [
        [{"error": 4}, {"error": 16}, {"error": 15}, {"error": 4}],
        ["u", "u", "u", "u"],
        [NOT_SUPPORTED, NOT_SUPPORTED, {"error": 15}, NOT_SUPPORTED],
    ]


def test_slow_calls_and_the_log(tmp_path: Path) -> None:
    log = tmp_path / "calls.log"
    scenario: Scenario = {
        "gpus": [{"name": "a"}, {"name": "b"}],
        "slow_ms": {"nvmlDeviceGetName@1": 300},
        "log": str(log),
    }
    timed = (
        "import time\n"
        "def timed(h):\n"
        "    start = time.perf_counter(); n.nvmlDeviceGetName(h)\n"
        "    return time.perf_counter() - start\n"
    )
    _, slow = ask(scenario, tmp_path, "timed(g[0])", "timed(g[1])", start=timed + START)
    assert slow >= 0.3
    assert log.read_text("utf-8").split("\n") == [
        "nvmlInitWithFlags", "nvmlInit", "nvmlDeviceGetCount_v2",
        "nvmlDeviceGetHandleByIndex_v2 0", "nvmlDeviceGetHandleByIndex_v2 1",
        "nvmlDeviceGetName 0", "nvmlDeviceGetName 1", "",
    ]  # fmt: skip


@pytest.mark.parametrize("deaf", [0, 1])
def test_a_hanging_call(tmp_path: Path, deaf: int) -> None:
    """Python cannot interrupt it; SIGTERM ends it unless it is deaf, SIGKILL always does."""
    log = tmp_path / "calls.log"
    scenario: Scenario = {
        "gpus": [{"name": "a"}],
        "hang": {"nvmlDeviceGetName@0": 600},
        "hang_deaf": deaf,
        "log": str(log),
    }
    if not deaf:
        del scenario["hang_deaf"]
    process = subprocess.Popen(
        child(tmp_path, START + "\nn.nvmlDeviceGetName(g[0])\n"),
        env={**os.environ, **fakenvml.environment(scenario, tmp_path)},
    )
    try:
        deadline = time.monotonic() + 200
        while not (log.exists() and "nvmlDeviceGetName" in log.read_text("utf-8")):
            assert time.monotonic() < deadline
            time.sleep(0.01)
        time.sleep(0.05)  # from the log line to the hang itself
        process.send_signal(signal.SIGINT)
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.2)
        process.terminate()
        if deaf:
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(0.3)
        else:
            assert process.wait(200) == -signal.SIGTERM
    finally:
        process.kill()
        process.wait(200)


def test_an_old_driver_lacks_symbols(tmp_path: Path) -> None:
    """Before driver 515 only _v2 of the process lists; pynvml has an error of its own for that."""
    gone = {"error": 13}
    assert ask(
        scenarios.driver_470(),
        tmp_path,
        'ask("nvmlDeviceGetMemoryInfo", g[0], n.nvmlMemory_v2)',
        'ask("nvmlDeviceGetComputeRunningProcesses_v3", g[0])',
        'ask("nvmlDeviceGetComputeRunningProcesses", g[0])',
        'ask("nvmlDeviceGetCurrentClocksEventReasons", g[0])',
        'ask("nvmlDeviceGetGspFirmwareVersion", g[0])',
        'ask("nvmlDeviceGetComputeRunningProcesses_v2", g[0])',
        'ask("nvmlDeviceGetCurrentClocksThrottleReasons", g[0])',
        'ask("nvmlDeviceGetMemoryInfo", g[0])["total"] >> 20',
        'ask("nvmlSystemGetDriverVersion")',
    ) == [gone, gone, "NVMLLibraryMismatchError", gone, gone, [], 1, 40960, "470.256.02"]


def test_a_misspelt_absent_symbol_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nvmlDeviceGetNmae"):
        fakenvml.environment({"gpus": [], "absent": ["nvmlDeviceGetNmae"]}, tmp_path)


def test_a_line_break_in_a_value_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"gpus\.0\.name"):
        fakenvml.write_scenario(tmp_path / "x", {"gpus": [{"name": "a\nb"}]})


def test_without_a_scenario_file_the_library_stops_loudly(tmp_path: Path) -> None:
    environment = {**os.environ, **fakenvml.environment({"gpus": []}, tmp_path)}
    environment["FAKE_NVML"] = str(tmp_path / "absent")
    result = subprocess.run(
        [sys.executable, "-c", "import pynvml; pynvml.nvmlInit()"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == -signal.SIGABRT
    assert "cannot read $FAKE_NVML" in result.stderr


@pytest.mark.parametrize("name", scenarios.ALL)
def test_scenarios_are_plain_data_and_fresh(name: str) -> None:
    builder = scenarios.ALL[name]
    scenario = builder()
    assert json.loads(json.dumps(scenario)) == scenario
    scenario["gpus"][0]["name"] = "changed"
    assert builder()["gpus"][0]["name"] != "changed"
