"""Builds the fake `libnvidia-ml.so.1` and writes the scenario that it answers from.

A scenario is plain data (it survives a round trip through JSON). What it does not say, the GPU does
not support: the call then returns NVML_ERROR_NOT_SUPPORTED (3), as on a card without the feature.

    environment = fakenvml.environment(scenarios.h200_x8(), tmp_path)
    subprocess.run([sys.executable, "nvml.py"], env={**os.environ, **environment})

The loader reads LD_LIBRARY_PATH when a process starts, so the fake works in children only.

Faults, all keyed by `FUNCTION`, `FUNCTION@gpu`, `*@gpu` or `*`, the most telling one first
(`FUNCTION@gpu`, `*@gpu`, `FUNCTION`, `*`); functions have the names that the library exports
(`nvmlDeviceGetCount_v2`), except that `nvmlInit` stands for every spelling of it:

- `fail`: the error code that the call returns; 0 exempts one call from a wider rule
- `hang`: seconds that the call takes and lets no signal handler end (SIGTERM and SIGKILL do)
- `slow_ms`: milliseconds that the call takes before it answers
"""

from __future__ import annotations

import atexit
import functools
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from tests.support import leftovers

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

SOURCE = Path(__file__).with_name("fake_nvml.c")
LIBRARY = "libnvidia-ml.so.1"

# A number, or "!15": the field's own return code.
FieldValue = int | float | str


class Link(TypedDict, total=False):
    """One NVLink; an inactive one has a state only."""

    state: int  # 1 active, 0 inactive
    remote_bdf: str  # PCI address of the other end: a GPU or a switch
    remote_type: int  # 0 GPU, 1 IBM NPU, 2 NVSwitch, 255 unknown
    version: int  # NVML_NVLINK_VERSION_*: 3 V100, 4/5 A100/RTX 3090, 6 H100, 7 B200
    speed_mbps: int  # raw speed in MB/s, each direction; becomes field 164
    errors: Mapping[str, int]  # replay, recovery, crc_flit, crc_data


class Process(TypedDict, total=False):
    """One process on a GPU."""

    pid: int
    used_bytes: int  # absent: NVML_VALUE_NOT_AVAILABLE
    gpu_instance_id: int  # absent: 0xFFFFFFFF
    compute_instance_id: int


class XidEvent(TypedDict):
    """An Xid that a process which waits for events receives."""

    gpu: int
    code: int


class MigDevice(TypedDict, total=False):
    """One MIG device; an empty one is a hole in the numbering."""

    uuid: str
    name: str
    memory_total: int  # bytes
    memory_reserved: int
    memory_used: int
    gpu_instance_id: int
    compute_instance_id: int
    gpu_slices: int
    compute_slices: int
    multiprocessors: int


class Mode(TypedDict):
    """A switch that changes at the next reset or reboot."""

    current: int
    pending: int


class GspFirmware(TypedDict, total=False):
    """Firmware of the GPU system processor."""

    enabled: int
    default: int
    version: str


class Utilization(TypedDict):
    """Busy time in percent."""

    gpu: int
    memory: int


class Clocks(TypedDict, total=False):
    """Clocks in MHz, by `graphics`, `sm`, `memory`, `video`."""

    current: Mapping[str, int]
    max: Mapping[str, int]


class EccErrors(TypedDict, total=False):
    """Counts, by `corrected`, `uncorrected` and by `sram_…`, `dram_…` of the two."""

    volatile: Mapping[str, int]
    aggregate: Mapping[str, int]


class RemappedRows(TypedDict):
    """Rows of memory that were replaced (Ampere and later)."""

    corrected: int
    uncorrected: int
    pending: int
    failure: int


class RetiredPages(TypedDict):
    """Pages of memory that are no longer used (before Ampere)."""

    single_bit: int
    double_bit: int
    pending: int


class Repair(TypedDict):
    """Repairs that the next reset carries out."""

    channel_pending: int
    tpc_pending: int


class Temperatures(TypedDict, total=False):
    """Thresholds in degrees Celsius."""

    shutdown: int
    slowdown: int
    memory_max: int
    gpu_max: int


# "default" and "min" are what NVML calls them, which class syntax allows as well.
class Power(TypedDict, total=False):
    """Power in milliwatts."""

    usage: int
    enforced: int
    default: int
    min: int
    max: int


class Pcie(TypedDict, total=False):
    """The PCIe link; `max_*` is what GPU and slot together can do."""

    generation: int
    max_generation: int
    gpu_max_generation: int
    width: int
    max_width: int
    replay_counter: int


class Fabric(TypedDict, total=False):
    """Registration with the NVLink fabric."""

    state: int  # 0 not supported, 1 not started, 2 in progress, 3 completed
    status: int  # an NVML return code, of meaning in state 3
    clique: int
    cluster: str  # 32 hexadecimal digits; zeros if the fabric ends at this node
    health_mask: int
    health_summary: int  # 0 not supported, 1 healthy, 2 unhealthy, 3 limited capacity
    newest_version: int  # of the versioned struct that this driver knows: 2 or 3


class Gpu(TypedDict, total=False):
    """One GPU. Numbers are as NVML gives them: bytes, milliwatts, degrees, enum values."""

    name: str
    uuid: str
    serial: str
    vbios: str
    brand: int
    architecture: int
    cc_major: int
    cc_minor: int
    minor_number: int
    multi_gpu_board: int
    multiprocessors: int  # for CUDA's stand-in (tests/standin)
    pci_bus_id: str  # "00000000:1B:00.0"
    pci_device_id: int  # device << 16 | vendor
    pci_subsystem_id: int
    memory_total: int
    memory_reserved: int
    memory_used: int
    bar1_total: int
    bar1_used: int
    persistence_mode: int
    compute_mode: int
    display_mode: int
    display_active: int
    virtualization_mode: int
    licensed: int  # absent on a GPU that needs no license
    ecc_mode: Mode
    mig_mode: Mode
    max_mig_devices: int
    mig_devices: list[MigDevice]
    gsp_firmware: GspFirmware
    compute_processes: list[Process]
    graphics_processes: list[Process]
    mps_processes: list[Process]
    utilization: Utilization
    performance_state: int
    clocks_mhz: Clocks
    event_reasons: int  # NVML_CLOCKS_EVENT_REASON_* bits
    inforom: int  # what nvmlDeviceValidateInforom returns: 0 good, 14 corrupted
    ecc_errors: EccErrors
    sram_threshold_exceeded: int
    remapped_rows: RemappedRows
    retired_pages: RetiredPages
    repair: Repair
    temperature_c: int
    temperature_threshold_c: Temperatures
    power_mw: Power
    pcie: Pcie
    gpu_numa_node: int  # only where the GPU itself is a NUMA node (Grace Hopper)
    cpu_affinity: str  # "0-31,64-95"
    memory_affinity: str  # NUMA nodes near the GPU: "0"
    # By field id, then (where the field has one) by scope id: {"230": 0, "164": {"3": 26562}}.
    # 91 (link count), 164 (speed), 165 (state) follow from `links` unless they stand here; None
    # withholds one.
    fields: Mapping[str, FieldValue | Mapping[str, FieldValue] | None]
    links: list[Link]
    fabric: Fabric


# One value for every pair, or a matrix by GPU index.
Pairs = int | list[list[int]]


class P2P(TypedDict, total=False):
    """nvmlGpuP2PStatus_t of every pair: 0 ok, 1 chipset, 2 GPU, … 5 not supported."""

    read: Pairs
    write: Pairs
    nvlink: Pairs
    atomics: Pairs
    pci: Pairs


class Scenario(TypedDict, total=False):
    """One machine, as its NVML library would tell of it."""

    driver: str
    nvml: str
    cuda: int  # 13000
    gpus: list[Gpu]
    topology: Pairs  # 0 internal, 10 single, 20 multiple, 30 host bridge, 40 node, 50 system
    p2p: P2P
    fail: Mapping[str, int]
    hang: Mapping[str, float]
    slow_ms: Mapping[str, float]
    hang_deaf: int  # 1: a hanging call shuts out SIGTERM as well, only SIGKILL ends it
    xid_events: list[XidEvent]
    log: str  # file to which every call is appended: "nvmlDeviceGetName 0"
    absent: list[str]  # symbols that this driver's library does not have
    # For the stand-ins of CUDA and NCCL (tests/standin/src/scenario.h)
    after: Mapping[str, int]  # calls of a function that succeed before `fail` and `hang` apply
    corrupt: Mapping[str, int]  # collectives whose result is wrong
    unless: Mapping[str, str]  # "NAME=VALUE": no fault of a call where a process has that variable
    cuda_context_bytes: int
    cuda_log: str


def write_scenario(path: Path, scenario: Scenario) -> None:
    """Write `scenario` in the form that the library reads from $FAKE_NVML."""
    scenario = {**scenario, "gpus": [_with_link_fields(gpu) for gpu in scenario.get("gpus", [])]}
    path.write_text("".join(f"{key}={value}\n" for key, value in _flat("", scenario)), "utf-8")


def build(into: Path, absent: tuple[str, ...] = ()) -> Path:
    """Compile the library into the folder `into`, without the symbols `absent`."""
    unknown = set(absent) - exported()
    if unknown:
        message = f"the fake has no symbols {sorted(unknown)} that could be absent"
        raise ValueError(message)
    compiler = find_compiler()
    if compiler is None:
        message = "the fake NVML needs a C compiler: cc, gcc or clang"
        raise FileNotFoundError(message)
    command = [
        compiler, "-O2", "-shared", "-fPIC", "-fvisibility=hidden", f"-Wl,-soname,{LIBRARY}",
        "-o", str(into / LIBRARY), str(SOURCE),
    ]  # fmt: skip
    if absent:
        # Hiding symbols at link time needs no #ifdef in the source and works for any of them.
        script = into / "absent.map"
        script.write_text(f"{{ local: {'; '.join(absent)}; }};\n", "utf-8")
        command.append(f"-Wl,--version-script={script}")
    subprocess.run(command, check=True, capture_output=True, text=True)
    return into


@functools.cache
def library(absent: tuple[str, ...] = ()) -> Path:
    """Return a folder with the library, built once in a process for each set of symbols."""
    folder = leftovers.folder("fakenvml-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return build(folder, absent)


def environment(scenario: Scenario, folder: Path) -> dict[str, str]:
    """Return the variables under which a child sees `scenario`, whose file lands in `folder`."""
    path = folder / "fake_nvml.conf"
    write_scenario(path, scenario)
    libraries = [str(library(tuple(scenario.get("absent", ()))))]
    inherited = os.environ.get("LD_LIBRARY_PATH")
    if inherited:
        libraries.append(inherited)
    return {"LD_LIBRARY_PATH": os.pathsep.join(libraries), "FAKE_NVML": str(path)}


def find_compiler() -> str | None:
    """Return the C compiler, or None where there is none (tests then skip)."""
    return next((found for name in ("cc", "gcc", "clang") if (found := shutil.which(name))), None)


@functools.cache
def exported() -> frozenset[str]:
    """Return the names of the functions that the fake has."""
    text = SOURCE.read_text("utf-8")
    return frozenset(re.findall(r"^(?:API |GET\w*\(|PROCESSES\()(nvml\w+)", text, re.MULTILINE))


def _flat(prefix: str, value: object) -> Iterator[tuple[str, str]]:
    """Yield `gpus.0.name`, `gpus.#`, …: one line for every leaf, and every list's length."""
    if value is None:
        return
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _flat(f"{prefix}.{key}" if prefix else key, inner)
    elif isinstance(value, list):
        yield f"{prefix}.#", str(len(value))
        for index, inner in enumerate(value):
            yield from _flat(f"{prefix}.{index}", inner)
    else:
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if "\n" in text:
            message = f"{prefix}: a value cannot hold a line break"
            raise ValueError(message)
        yield prefix, text


def _with_link_fields(gpu: Gpu) -> Gpu:
    links = gpu.get("links")
    if links is None:
        return gpu
    derived: dict[str, FieldValue | Mapping[str, FieldValue] | None] = {
        "91": len(links),
        "164": {str(i): link["speed_mbps"] for i, link in enumerate(links) if "speed_mbps" in link},
        "165": {str(i): link["state"] for i, link in enumerate(links) if "state" in link},
    }
    return {**gpu, "fields": {**derived, **gpu.get("fields", {})}}
