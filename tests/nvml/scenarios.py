"""Machines for the fake NVML: what their library would answer, built from a catalogue of cards.

Names, memory sizes, compute capabilities, PCIe and NVLink figures and power limits are those that
the drivers print. Temperatures, BIOS versions and bus addresses are plausible examples.

Every builder returns a fresh value: a test may change it freely.

Over 400 lines because it is a catalogue: one builder for each machine.
"""

from __future__ import annotations

import copy
import uuid
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.nvml.fakenvml import FieldValue, Gpu, Link, MigDevice, Power, Scenario, Temperatures

MIB = 1 << 20

# nvmlBrandType_t
TESLA, GEFORCE, NVIDIA = 2, 5, 14
# nvmlDeviceArchitecture_t
VOLTA, TURING, AMPERE, ADA, HOPPER, BLACKWELL = 5, 6, 7, 8, 9, 10
# nvmlGpuTopologyLevel_t
SINGLE, MULTIPLE, PHB, NODE, SYSTEM = 10, 20, 30, 40, 50
# nvmlGpuP2PStatus_t
P2P_OK, P2P_CHIPSET, P2P_GPU, P2P_NOT_SUPPORTED = 0, 1, 2, 5
# nvmlReturn_t
GPU_IS_LOST = 15
# nvmlIntNvLinkDeviceType_t
GPU, SWITCH = 0, 2

DRIVER_470 = "470.256.02"
DRIVER_580 = "580.95.05"

# What libnvidia-ml of CUDA 11.4 (driver 470) does not have yet, by the history of nvml.h.
ABSENT_470 = [
    "nvmlDeviceGetMemoryInfo_v2",
    "nvmlDeviceGetComputeRunningProcesses_v3",
    "nvmlDeviceGetGraphicsRunningProcesses_v3",
    "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    "nvmlDeviceGetGpuFabricInfo",
    "nvmlDeviceGetGpuFabricInfoV",
    "nvmlDeviceGetCurrentClocksEventReasons",
    "nvmlDeviceGetTemperatureV",
    "nvmlDeviceGetRepairStatus",
    "nvmlDeviceGetGspFirmwareMode",
    "nvmlDeviceGetGspFirmwareVersion",
    "nvmlDeviceGetGpuMaxPcieLinkGeneration",
    "nvmlDeviceGetNumaNodeId",
    "nvmlDeviceGetSramEccErrorStatus",
]


# ---- cards -------------------------------------------------------------------------------------


def _card(
    name: str,
    *,
    cc: tuple[int, int],
    brand: int,
    architecture: int,
    mib: int,
    reserved_mib: int,
    device_id: int,
    pcie: tuple[int, int],
    idle_generation: int | None = None,
    watts: tuple[int, int, int] | None,
    heat: tuple[int, int, int],
    vbios: str,
) -> Gpu:
    """Return an idle, healthy card; `watts` is (min, default, max), `heat` (max, slow, off)."""
    generation, width = pcie
    power: Power = {"usage": 12_000}
    if watts:
        low, default, high = (w * 1000 for w in watts)
        power = {
            "usage": default // 6,
            "enforced": default,
            "default": default,
            "min": low,
            "max": high,
        }
    threshold: Temperatures = {"gpu_max": heat[0], "slowdown": heat[1], "shutdown": heat[2]}
    return {
        "name": name,
        "vbios": vbios,
        "brand": brand,
        "architecture": architecture,
        "cc_major": cc[0],
        "cc_minor": cc[1],
        "multi_gpu_board": 0,
        "pci_device_id": device_id << 16 | 0x10DE,
        "pci_subsystem_id": 0x16C110DE,
        "memory_total": mib * MIB,
        "memory_reserved": reserved_mib * MIB,
        "memory_used": 4 * MIB,
        "bar1_total": 256 * MIB,
        "bar1_used": 1 * MIB,
        "persistence_mode": 0,
        "compute_mode": 0,
        "display_mode": 0,
        "display_active": 0,
        "virtualization_mode": 0,
        "gsp_firmware": {"enabled": 1, "default": 1, "version": DRIVER_580},
        "compute_processes": [],
        "graphics_processes": [],
        "mps_processes": [],
        "utilization": {"gpu": 0, "memory": 0},
        "performance_state": 0,
        "clocks_mhz": {
            "current": {"graphics": 345, "sm": 345, "memory": 1593},
            "max": {"graphics": 1980, "sm": 1980, "memory": 2619},
        },
        "event_reasons": 0x1,
        "inforom": 0,
        "temperature_c": 33,
        "temperature_threshold_c": threshold,
        "power_mw": power,
        "pcie": {
            "generation": idle_generation or generation,
            "max_generation": generation,
            "gpu_max_generation": generation,
            "width": width,
            "max_width": width,
            "replay_counter": 0,
        },
        "fields": _fields(),
        "fabric": {"state": 0, "status": 0, "clique": 0},
    }


def _fields() -> dict[str, FieldValue | dict[str, FieldValue] | None]:
    healthy = (94, 95, *range(173, 184), 230)
    return {str(field): 0 for field in healthy}


def _datacenter(card: Gpu) -> Gpu:
    """Add what cards with ECC memory answer."""
    card["persistence_mode"] = 1
    card["serial"] = "1650322000000"
    card["ecc_mode"] = {"current": 1, "pending": 1}
    counts = ("corrected", "uncorrected", "sram_corrected", "sram_uncorrected", "dram_corrected")
    card["ecc_errors"] = {
        "volatile": dict.fromkeys(counts, 0),
        "aggregate": dict.fromkeys(counts, 0),
    }
    card["fields"] = {**card["fields"], "82": 41}
    if card["architecture"] >= AMPERE:
        card["sram_threshold_exceeded"] = 0
        card["remapped_rows"] = {"corrected": 0, "uncorrected": 0, "pending": 0, "failure": 0}
    else:
        card["retired_pages"] = {"single_bit": 0, "double_bit": 0, "pending": 0}
    if card["architecture"] >= HOPPER:
        card["repair"] = {"channel_pending": 0, "tpc_pending": 0}
    return card


def mx450() -> Gpu:
    """Return a small laptop chip: no power limits, no NVLink, a narrow PCIe link."""
    return _card(
        "NVIDIA GeForce MX450", cc=(7, 5), brand=GEFORCE, architecture=TURING, mib=2048,
        reserved_mib=59, device_id=0x1F97, pcie=(3, 4), idle_generation=1, watts=None,
        heat=(98, 98, 101), vbios="90.17.89.00.4D",
    )  # fmt: skip


def rtx_3090() -> Gpu:
    """Return a GeForce card of 24 GB that can carry an NVLink bridge."""
    return _card(
        "NVIDIA GeForce RTX 3090", cc=(8, 6), brand=GEFORCE, architecture=AMPERE, mib=24576,
        reserved_mib=316, device_id=0x2204, pcie=(4, 16), idle_generation=1, watts=(100, 350, 350),
        heat=(93, 95, 98), vbios="94.02.42.00.A9",
    )  # fmt: skip


def rtx_4090() -> Gpu:
    """Return a GeForce card of 24 GB without NVLink."""
    return _card(
        "NVIDIA GeForce RTX 4090", cc=(8, 9), brand=GEFORCE, architecture=ADA, mib=24564,
        reserved_mib=362, device_id=0x2684, pcie=(4, 16), idle_generation=1, watts=(150, 450, 600),
        heat=(90, 97, 100), vbios="95.02.18.80.5F",
    )  # fmt: skip


def v100_sxm2_32gb() -> Gpu:
    """Return a Volta of 32 GB: pages are retired, not rows remapped; no GSP."""
    card = _datacenter(
        _card(
            "Tesla V100-SXM2-32GB",
            cc=(7, 0),
            brand=TESLA,
            architecture=VOLTA,
            mib=32768,
            reserved_mib=268,
            device_id=0x1DB5,
            pcie=(3, 16),
            watts=(150, 300, 300),
            heat=(83, 87, 90),
            vbios="88.00.80.00.04",
        )
    )
    del card["gsp_firmware"]
    return card


def a100_sxm4_80gb() -> Gpu:
    """Return the 80 GB Ampere of HGX and DGX boards."""
    card = _datacenter(
        _card(
            "NVIDIA A100-SXM4-80GB",
            cc=(8, 0),
            brand=NVIDIA,
            architecture=AMPERE,
            mib=81920,
            reserved_mib=639,
            device_id=0x20B2,
            pcie=(4, 16),
            watts=(100, 400, 400),
            heat=(85, 89, 92),
            vbios="92.00.45.00.03",
        )
    )
    card["mig_mode"] = {"current": 0, "pending": 0}
    card["max_mig_devices"] = 7
    return card


def a100_pcie_40gb() -> Gpu:
    """Return the 40 GB Ampere card, no bridge fitted."""
    card = _datacenter(
        _card(
            "NVIDIA A100-PCIE-40GB",
            cc=(8, 0),
            brand=NVIDIA,
            architecture=AMPERE,
            mib=40960,
            reserved_mib=620,
            device_id=0x20F1,
            pcie=(4, 16),
            watts=(150, 250, 250),
            heat=(85, 89, 92),
            vbios="92.00.25.00.08",
        )
    )
    card["mig_mode"] = {"current": 0, "pending": 0}
    card["max_mig_devices"] = 7
    card["links"] = [{"state": 0} for _ in range(12)]
    return card


def _hopper(name: str, mib: int, reserved_mib: int, device_id: int, watts: int) -> Gpu:
    card = _datacenter(
        _card(
            name,
            cc=(9, 0),
            brand=NVIDIA,
            architecture=HOPPER,
            mib=mib,
            reserved_mib=reserved_mib,
            device_id=device_id,
            pcie=(5, 16),
            watts=(200, watts, watts),
            heat=(87, 89, 95),
            vbios="96.00.74.00.01",
        )
    )
    card["mig_mode"] = {"current": 0, "pending": 0}
    card["max_mig_devices"] = 7
    card["bar1_total"] = 131072 * MIB
    return card


def h100_sxm() -> Gpu:
    """Return the 80 GB Hopper of HGX and DGX boards."""
    return _hopper("NVIDIA H100 80GB HBM3", 81559, 551, 0x2330, 700)


def h100_pcie() -> Gpu:
    """Return the 80 GB Hopper card, without bridges: 18 inactive links."""
    card = _hopper("NVIDIA H100 PCIe", 81559, 551, 0x2331, 350)
    card["links"] = [{"state": 0} for _ in range(18)]
    return card


def h200() -> Gpu:
    """Return the 141 GB Hopper of HGX boards."""
    return _hopper("NVIDIA H200", 143771, 615, 0x2335, 700)


def l40s() -> Gpu:
    """Return a 48 GB Ada card: ECC memory, no NVLink, no MIG."""
    return _datacenter(
        _card(
            "NVIDIA L40S",
            cc=(8, 9),
            brand=NVIDIA,
            architecture=ADA,
            mib=46068,
            reserved_mib=599,
            device_id=0x26B9,
            pcie=(4, 16),
            watts=(100, 350, 350),
            heat=(88, 95, 98),
            vbios="95.02.66.00.02",
        )
    )


def b200() -> Gpu:
    """Return the 180 GB Blackwell of HGX boards."""
    card = _datacenter(
        _card(
            "NVIDIA B200",
            cc=(10, 0),
            brand=NVIDIA,
            architecture=BLACKWELL,
            mib=183359,
            reserved_mib=733,
            device_id=0x2901,
            pcie=(5, 16),
            watts=(200, 1000, 1000),
            heat=(87, 92, 97),
            vbios="97.00.82.00.2E",
        )
    )
    card["mig_mode"] = {"current": 0, "pending": 0}
    card["max_mig_devices"] = 7
    return card


# ---- machines ----------------------------------------------------------------------------------


def laptop_mx450() -> Scenario:
    """Return a laptop: one MX450 of 2 GB, the desktop runs on the other chip."""
    gpu = mx450()
    gpu["graphics_processes"] = [{"pid": 1543, "used_bytes": 4 * MIB}]
    return _machine([gpu])


def rtx_4090_x1() -> Scenario:
    """Return a workstation: one RTX 4090 that also drives the screen."""
    gpu = rtx_4090()
    gpu["display_active"] = 1
    gpu["display_mode"] = 1
    gpu["memory_used"] = 812 * MIB
    gpu["graphics_processes"] = [
        {"pid": 2211, "used_bytes": 310 * MIB},
        {"pid": 2390, "used_bytes": 96 * MIB},
    ]
    return _machine([gpu])


def rtx_3090_x2_nvlink() -> Scenario:
    """Return two RTX 3090 with a bridge of four links."""
    scenario = _machine([rtx_3090(), rtx_3090()], levels=[[0, PHB], [PHB, 0]])
    _bridge(scenario, (0, 1), links=4, version=5, speed=14062)
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_OK}
    return scenario


def v100_x4() -> Scenario:
    """Return four V100-SXM2-32GB, six links each: two to every other GPU."""
    scenario = _machine([v100_sxm2_32gb() for _ in range(4)], levels=_sockets(4, 4, PHB))
    for a in range(4):
        for b in range(a + 1, 4):
            _bridge(scenario, (a, b), links=2, version=3, speed=25781)
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_OK}
    return scenario


def a100_x8() -> Scenario:
    """Return eight A100-SXM4-80GB, twelve links each over six NVSwitches."""
    return _switched([a100_sxm4_80gb() for _ in range(8)], switches=6, links=12, version=4)


def h100_x8() -> Scenario:
    """Return a healthy HGX H100."""
    return _switched([h100_sxm() for _ in range(8)], switches=4, links=18, version=6, speed=26562)


def h100_x8_dead_link() -> Scenario:
    """Return an HGX H100 whose GPU 5 lost link 7."""
    scenario = h100_x8()
    scenario["gpus"][5]["links"][7] = {"state": 0}
    return scenario


def h100_pcie_x2_bridged() -> Scenario:
    """Return two H100 PCIe with three bridges: 12 of the 18 links are active, as they should be."""
    scenario = _machine([h100_pcie(), h100_pcie()], levels=_sockets(2, 2, NODE))
    for gpu in scenario["gpus"]:
        gpu["links"] = []
    _bridge(scenario, (0, 1), links=12, version=6, speed=26562)
    for gpu in scenario["gpus"]:
        gpu["links"] += [{"state": 0} for _ in range(6)]
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_OK}
    return scenario


def h100_pcie_x2() -> Scenario:
    """Return two H100 PCIe without bridges: 0 of 18 links, and nothing wrong with that."""
    scenario = _machine([h100_pcie(), h100_pcie()], levels=_sockets(2, 2, NODE))
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_NOT_SUPPORTED}
    return scenario


def h200_x8() -> Scenario:
    """Return a healthy HGX H200."""
    return _switched([h200() for _ in range(8)], switches=4, links=18, version=6, speed=26562)


def h200_x8_lost(gpu: int = 3) -> Scenario:
    """Return an HGX H200 of which one GPU has fallen off the bus: it gives not even a handle."""
    scenario = h200_x8()
    scenario["fail"] = {f"*@{gpu}": GPU_IS_LOST}
    return scenario


def h200_x8_lost_late(gpu: int = 3) -> Scenario:
    """Return an HGX H200 of which one GPU gives a handle and is lost at the first question."""
    scenario = h200_x8()
    scenario["fail"] = {f"*@{gpu}": GPU_IS_LOST, f"nvmlDeviceGetHandleByIndex_v2@{gpu}": 0}
    return scenario


def l40s_x4() -> Scenario:
    """Return four L40S that cannot reach each other: each on its own root port, no P2P."""
    scenario = _machine([l40s() for _ in range(4)], levels=_sockets(4, 2, NODE))
    scenario["p2p"] = {
        "read": P2P_CHIPSET,
        "write": P2P_CHIPSET,
        "nvlink": P2P_NOT_SUPPORTED,
    }
    return scenario


def b200_x8() -> Scenario:
    """Return a healthy HGX B200."""
    return _switched([b200() for _ in range(8)], switches=2, links=18, version=7, speed=53125)


def mixed_a100_3090() -> Scenario:
    """Return an A100 card beside an RTX 3090: two compute capabilities in one box."""
    scenario = _machine([a100_pcie_40gb(), rtx_3090()], levels=_sockets(2, 2, PHB))
    scenario["p2p"] = {"read": P2P_GPU, "write": P2P_GPU, "nvlink": P2P_NOT_SUPPORTED}
    return scenario


def a100_mig() -> Scenario:
    """Return an A100 cut into 3g.40gb, 2g.20gb and 1g.10gb, with a hole in the numbering."""
    gpu = a100_sxm4_80gb()
    gpu["mig_mode"] = {"current": 1, "pending": 1}
    # With MIG on, the GPU as a whole answers neither of these.
    del gpu["utilization"]
    del gpu["remapped_rows"]
    gpu["mig_devices"] = [
        _slice(gpu, 3, 40192, gpu_instance=1, multiprocessors=42),
        _slice(gpu, 2, 19968, gpu_instance=5, multiprocessors=28),
        {},
        _slice(gpu, 1, 9728, gpu_instance=13, multiprocessors=14),
    ]
    gpu["compute_processes"] = [
        {"pid": 4711, "used_bytes": 1024 * MIB, "gpu_instance_id": 1, "compute_instance_id": 0}
    ]
    return _machine([gpu])


def wsl() -> Scenario:
    """Return WSL 2: the Windows driver answers what identifies the card, little else."""
    gpu = rtx_3090()
    gpu["persistence_mode"] = 1
    gpu["display_active"] = 1
    gpu["memory_used"] = 1490 * MIB
    scenario = _machine([gpu])
    scenario["p2p"] = {}
    del scenario["topology"]
    del gpu["minor_number"]
    del gpu["cpu_affinity"]
    del gpu["memory_affinity"]
    del gpu["bar1_total"]
    del gpu["virtualization_mode"]
    del gpu["gsp_firmware"]
    del gpu["compute_processes"]
    del gpu["graphics_processes"]
    del gpu["clocks_mhz"]
    del gpu["inforom"]
    del gpu["temperature_threshold_c"]
    del gpu["fields"]
    del gpu["fabric"]
    scenario["absent"] = [
        "nvmlDeviceGetGpuFabricInfo",
        "nvmlDeviceGetGpuFabricInfoV",
        "nvmlDeviceGetGspFirmwareMode",
        "nvmlDeviceGetGspFirmwareVersion",
        "nvmlDeviceGetRepairStatus",
        "nvmlDeviceGetMPSComputeRunningProcesses_v3",
    ]
    return scenario


def driver_470() -> Scenario:
    """Return two A100 cards under driver 470: symbols and fields of later years are missing."""
    scenario = _machine([a100_pcie_40gb(), a100_pcie_40gb()], levels=_sockets(2, 2, PHB))
    scenario["driver"] = DRIVER_470
    scenario["nvml"] = f"11.{DRIVER_470}"
    scenario["cuda"] = 11040
    scenario["absent"] = list(ABSENT_470)
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_NOT_SUPPORTED}
    for gpu in scenario["gpus"]:
        # Field numbers ended at 160.
        gpu["fields"] = {"94": 0, "95": 0, "82": 41, "164": None, "165": None}
    return scenario


def driver_999() -> Scenario:
    """Return a machine of the future: a driver, a GPU and codes that nobody here has heard of."""
    gpus = [b200(), b200()]
    scenario = _machine(gpus, levels=[[0, 60], [60, 0]])
    scenario["driver"] = "999.10.01"
    scenario["nvml"] = "19.999.10.01"
    scenario["cuda"] = 19000
    for gpu in gpus:
        gpu["gsp_firmware"] = {"enabled": 1, "default": 1, "version": scenario["driver"]}
        gpu["name"] = "NVIDIA X900"
        gpu["brand"] = 40
        gpu["architecture"] = 40
        gpu["cc_major"], gpu["cc_minor"] = 15, 0
        gpu["memory_total"] = 1_048_576 * MIB
        gpu["compute_mode"] = 9
        gpu["event_reasons"] = 1 << 40
        gpu["pcie"].update({"generation": 8, "max_generation": 8, "gpu_max_generation": 8})
        gpu["fabric"] = {"state": 9, "status": 77, "clique": 0, "health_summary": 9}
        gpu["fields"] = {**gpu["fields"], "230": 12}
        gpu["links"] = [
            {"state": 3, "remote_type": 9, "version": 12, "speed_mbps": 200_000} for _ in range(36)
        ]
    scenario["p2p"] = {"read": 42, "write": 42, "nvlink": 42}
    scenario["fail"] = {"nvmlDeviceGetRemappedRows": 77}
    return scenario


ALL: dict[str, Callable[[], Scenario]] = {
    builder.__name__: builder
    for builder in (
        laptop_mx450,
        rtx_4090_x1,
        rtx_3090_x2_nvlink,
        v100_x4,
        a100_x8,
        h100_x8,
        h100_x8_dead_link,
        h100_pcie_x2_bridged,
        h100_pcie_x2,
        h200_x8,
        h200_x8_lost,
        h200_x8_lost_late,
        l40s_x4,
        b200_x8,
        mixed_a100_3090,
        a100_mig,
        wsl,
        driver_470,
        driver_999,
    )
}


# ---- parts -------------------------------------------------------------------------------------


def bdf(index: int) -> str:
    """Return the PCI address of GPU `index`, as NVML prints it."""
    return f"00000000:{0x1B + 0x10 * index:02X}:00.0"


def switch_bdf(index: int) -> str:
    """Return the PCI address of NVSwitch `index`."""
    return f"00000000:{0xC4 + index:02X}:00.0"


def _machine(gpus: list[Gpu], *, levels: list[list[int]] | None = None) -> Scenario:
    half = (len(gpus) + 1) // 2
    for index, gpu in enumerate(gpus):
        far = len(gpus) > 2 and index >= half
        seed = f"{gpu['name']} {index}"
        gpu["uuid"] = f"GPU-{uuid.uuid5(uuid.NAMESPACE_OID, seed)}"
        gpu["pci_bus_id"] = bdf(index)
        gpu["minor_number"] = index
        gpu["memory_affinity"] = "1" if far else "0"
        gpu["cpu_affinity"] = "48-95,144-191" if far else "0-47,96-143"
    return {
        "driver": DRIVER_580,
        "nvml": f"13.{DRIVER_580}",
        "cuda": 13000,
        "gpus": gpus,
        "topology": levels or _sockets(len(gpus), len(gpus), PHB),
        "p2p": {
            "read": P2P_NOT_SUPPORTED,
            "write": P2P_NOT_SUPPORTED,
            "nvlink": P2P_NOT_SUPPORTED,
        },
    }


def _switched(
    gpus: list[Gpu], *, switches: int, links: int, version: int, speed: int = 25000
) -> Scenario:
    """Return a board on which every GPU reaches every other through NVSwitches."""
    scenario = _machine(gpus, levels=_sockets(len(gpus), len(gpus) // 2, NODE))
    for gpu in gpus:
        gpu["links"] = [
            {
                "state": 1,
                "remote_bdf": switch_bdf(link % switches),
                "remote_type": SWITCH,
                "version": version,
                "speed_mbps": speed,
                "errors": {"replay": 0, "recovery": 0, "crc_flit": 0, "crc_data": 0},
            }
            for link in range(links)
        ]
        if gpu["architecture"] >= HOPPER:
            gpu["fabric"] = {"state": 3, "status": 0, "clique": 0, "health_summary": 1}
    scenario["p2p"] = {"read": P2P_OK, "write": P2P_OK, "nvlink": P2P_OK}
    return scenario


def _bridge(
    scenario: Scenario, pair: tuple[int, int], *, links: int, version: int, speed: int
) -> None:
    """Connect two GPUs directly, by links that are appended to those that they have."""
    for one, other in (pair, pair[::-1]):
        link: Link = {
            "state": 1,
            "remote_bdf": bdf(other),
            "remote_type": GPU,
            "version": version,
            "speed_mbps": speed,
            "errors": {"replay": 0, "recovery": 0, "crc_flit": 0, "crc_data": 0},
        }
        gpu = scenario["gpus"][one]
        gpu.setdefault("links", []).extend(copy.deepcopy(link) for _ in range(links))


def _sockets(count: int, per_socket: int, near: int) -> list[list[int]]:
    """Return the levels of `count` GPUs, `near` within a socket and SYSTEM across."""
    return [
        [
            0 if a == b else near if a // per_socket == b // per_socket else SYSTEM
            for b in range(count)
        ]
        for a in range(count)
    ]


def _slice(
    gpu: Gpu, slices: int, mib: int, *, gpu_instance: int, multiprocessors: int
) -> MigDevice:
    profile = f"{slices}g.{-(-mib // 1024)}gb"
    return {
        "uuid": f"MIG-{uuid.uuid5(uuid.NAMESPACE_OID, f'{profile} {gpu_instance}')}",
        "name": f"{gpu['name']} MIG {profile}",
        "memory_total": mib * MIB,
        "memory_reserved": 0,
        "memory_used": 12 * MIB,
        "gpu_instance_id": gpu_instance,
        "compute_instance_id": 0,
        "gpu_slices": slices,
        "compute_slices": slices,
        "multiprocessors": multiprocessors,
    }
