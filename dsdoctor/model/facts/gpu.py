"""Facts about the NVIDIA driver and its GPUs, as NVML reports them.

None means that the value could not be read or does not apply. Where it could not be read, `unread`
of the GPU (or of the pair) says why, under the dotted name of the value
(`health.recovery_action`, `links.3.speed_mbps`, `processes.graphics`) or of its group (`links`,
`fabric`).

Enumerations with names that people know (brand, architecture, topology, P2P) are strings; a value
that NVML has added since is `UNKNOWN_<value>`. Enumerations that are compared stay numbers.

Over 400 lines because it declares one record for each NVML structure and documents
every field; there is no logic to move out.
"""

from __future__ import annotations

import enum
import functools
from typing import Annotated

import msgspec

from dsdoctor.model.facts.base import Fact

#: More than any node has (16 in 2026): checks of how GPUs reach each other take cubic time.
MOST_GPUS = 256


class EventReason(enum.IntFlag):
    """Why the clocks are below their maximum: the bits of `GpuHealth.event_reasons`."""

    IDLE = 0x1
    APPLICATION_CLOCKS = 0x2
    SW_POWER_CAP = 0x4
    HW_SLOWDOWN = 0x8
    SYNC_BOOST = 0x10
    SW_THERMAL = 0x20
    HW_THERMAL = 0x40
    HW_POWER_BRAKE = 0x80
    DISPLAY_CLOCKS = 0x100


class RecoveryAction(enum.IntEnum):
    """What the driver requires to recover a GPU: the values of `GpuHealth.recovery_action`."""

    NONE = 0
    GPU_RESET = 1
    NODE_REBOOT = 2
    DRAIN_P2P = 3
    DRAIN_AND_RESET = 4
    RECOVER_IMEX_DOMAIN = 5
    BUS_RESET = 6
    SYSTEM_REBOOT = 7


class ComputeMode(enum.IntEnum):
    """Who may use a GPU: the values of `Gpu.compute_mode`."""

    DEFAULT = 0
    EXCLUSIVE_THREAD = 1
    PROHIBITED = 2
    EXCLUSIVE_PROCESS = 3


class FabricState(enum.IntEnum):
    """Progress of the GPU in joining the NVLink fabric: the values of `GpuFabric.state`."""

    NOT_SUPPORTED = 0
    NOT_STARTED = 1
    IN_PROGRESS = 2
    COMPLETED = 3


class FabricHealth(enum.IntEnum):
    """The values of `GpuFabric.health_summary`."""

    NOT_SUPPORTED = 0
    HEALTHY = 1
    UNHEALTHY = 2
    LIMITED_CAPACITY = 3


class Unread(msgspec.Struct, frozen=True, kw_only=True):
    """Why a value could not be read.

    Attributes:
        code: NVML's return code (3 not supported, 4 no permission, 13 no such function in this
            driver or this pynvml, 15 GPU lost), or None if it was not an NVML error.
        name: name of the code without its prefix (`NOT_SUPPORTED`), or of the Python exception.
    """

    code: int | None
    name: str


class NvmlError(msgspec.Struct, frozen=True, kw_only=True):
    """An error that prevents more than one value from being read.

    Attributes:
        code: NVML's return code (9 driver not loaded, 12 library not found, 15 GPU lost, 18 library
            and kernel module of different versions); None if pynvml itself failed to import.
        name: name of the code without its prefix; `PYNVML_IMPORT` if pynvml failed to import.
        message: the error in pynvml's words.
        call: the call that failed: a function of pynvml, or `import pynvml`.
    """

    code: int | None
    name: str
    message: str
    call: str


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that uses a GPU.

    Attributes:
        pid: process id in the host's PID namespace; inside a container it may match no process.
        kind: `compute`, `graphics` or `mps`; a process can appear once for each.
        used_bytes: GPU memory in use; None if the platform does not report it (WSL).
        gpu_instance_id: the MIG GPU instance that it runs on; None on a whole GPU.
    """

    pid: int
    kind: str
    used_bytes: int | None = None
    gpu_instance_id: int | None = None


class MigDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A MIG device.

    Attributes:
        index: index among the MIG devices of its GPU; indices may have gaps.
        uuid: `MIG-…`, as CUDA_VISIBLE_DEVICES takes it.
        name: full product name; newer drivers append the profile.
        profile: MIG profile as `nvidia-smi` prints it (`3g.40gb`).
        gpu_instance_id: NVML's id of its GPU instance.
        compute_instance_id: NVML's id of its compute instance.
        memory_total_bytes: memory of the device.
        memory_used_bytes: memory in use.
        memory_mib: memory by its profile, in MiB.
        gpu_slices: GPU slices that it has; most GPUs have seven.
        compute_slices: compute slices that it has.
        multiprocessors: number of SMs.
    """

    index: int
    uuid: str | None = None
    name: str | None = None
    profile: str | None = None
    gpu_instance_id: int | None = None
    compute_instance_id: int | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_mib: int | None = None
    gpu_slices: int | None = None
    compute_slices: int | None = None
    multiprocessors: int | None = None


class GpuLink(msgspec.Struct, frozen=True, kw_only=True):
    """One NVLink of a GPU; for an inactive link only the state is known.

    Attributes:
        link: number of the link on its GPU.
        state: 1 active, 0 inactive.
        remote_bdf: PCI address of the other end (`0000:1b:00.0`).
        remote_type: `GPU`, `SWITCH`, `IBMNPU` or `UNKNOWN`.
        version: NVML_NVLINK_VERSION_*: 3 is NVLink 2.2, 4 3.0, 5 3.1, 6 4.0, 7 5.0, 8 6.0.
        speed_mbps: raw speed in MB/s, in each direction.
        errors_replay: replay errors since the last reset; read only where slow queries are allowed.
        errors_recovery: recovery errors since the last reset; read under the same condition.
        errors_crc_flit: flow-control CRC errors since the last reset; under the same condition.
        errors_crc_data: data CRC errors since the last reset; under the same condition.
    """

    link: int
    state: int | None = None
    remote_bdf: str | None = None
    remote_type: str | None = None
    version: int | None = None
    speed_mbps: int | None = None
    errors_replay: int | None = None
    errors_recovery: int | None = None
    errors_crc_flit: int | None = None
    errors_crc_data: int | None = None

    @property
    def active(self) -> bool:
        """Whether the link is active."""
        return self.state == 1


class PcieErrors(msgspec.Struct, frozen=True, kw_only=True):
    """PCIe errors since the driver was loaded, as counts (NVML's fields 173 to 183).

    Attributes:
        correctable: correctable errors.
        naks_received: NAKs received: the other end requested a packet again.
        receiver: receiver errors.
        bad_tlp: transaction-layer packets that failed their check.
        naks_sent: NAKs sent: the GPU requested a packet again.
        bad_dllp: data-link-layer packets that failed their check.
        non_fatal: uncorrectable errors after which the link still works.
        fatal: uncorrectable errors after which the link does not work.
        unsupported_request: requests that the GPU does not support.
        lcrc: link CRC errors.
        lane: errors of single lanes.
    """

    correctable: int | None = None
    naks_received: int | None = None
    receiver: int | None = None
    bad_tlp: int | None = None
    naks_sent: int | None = None
    bad_dllp: int | None = None
    non_fatal: int | None = None
    fatal: int | None = None
    unsupported_request: int | None = None
    lcrc: int | None = None
    lane: int | None = None


class PcieLink(msgspec.Struct, frozen=True, kw_only=True):
    """The PCIe link of a GPU.

    Attributes:
        generation: current generation; it drops when the GPU is idle, so judge it under load only.
        max_generation: highest generation that GPU and slot support together.
        gpu_max_generation: highest generation that the GPU supports; if it is above max_generation,
            the slot is the limit.
        width: lanes in use.
        max_width: lanes that GPU and slot have together.
        replay_counter: packets that were sent again.
        replay_rollover_counter: how often that counter has overflowed.
        errors: error counts.
    """

    generation: int | None = None
    max_generation: int | None = None
    gpu_max_generation: int | None = None
    width: int | None = None
    max_width: int | None = None
    replay_counter: int | None = None
    replay_rollover_counter: int | None = None
    errors: PcieErrors = msgspec.field(default_factory=PcieErrors)


class GpuFabric(msgspec.Struct, frozen=True, kw_only=True):
    """Registration with the NVLink fabric: boards with NVSwitch, from Hopper on.

    Attributes:
        state: a FabricState; 0 on boards without a fabric, including A100 boards with NVSwitch.
        status: in state COMPLETED, NVML's return code of the registration; 0 = success.
        clique: id of the group of GPUs that reach each other.
        cluster: id of the NVLink domain that spans several nodes (NVL72 racks), as 32 hexadecimal
            digits; all zeros on boards whose fabric ends at the node.
        health_mask: NVML_GPU_FABRIC_HEALTH_MASK_* bits.
        health_summary: a FabricHealth; None if the driver does not report one.
    """

    state: int | None = None
    status: int | None = None
    clique: int | None = None
    cluster: str | None = None
    health_mask: int | None = None
    health_summary: int | None = None

    @property
    def spans_nodes(self) -> bool:
        """Whether NVLink connects this GPU with those of other nodes."""
        return self.state == FabricState.COMPLETED and bool((self.cluster or "").strip("0"))


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    """Health of a GPU: ECC, row remapping, page retirement, temperature and power.

    Attributes:
        recovery_action: a RecoveryAction (driver 570 and later).
        inforom_valid: the checksum of the card's InfoROM is right.
        event_reasons: EventReason bits; IDLE and SW_POWER_CAP are normal.
        ecc_volatile_corrected: corrected memory errors since the driver was loaded.
        ecc_volatile_uncorrected: uncorrected memory errors since the driver was loaded.
        ecc_aggregate_corrected: corrected memory errors over the life of the card.
        ecc_aggregate_uncorrected: uncorrected memory errors over the life of the card.
        sram_volatile_uncorrected: of the volatile uncorrected errors, those in SRAM.
        sram_aggregate_uncorrected: of the aggregate uncorrected errors, those in SRAM.
        sram_aggregate_corrected: of the aggregate corrected errors, those in SRAM.
        dram_aggregate_corrected: of the aggregate corrected errors, those in DRAM.
        sram_threshold_exceeded: the driver considers the SRAM due for replacement (root only).
        remapped_rows_corrected: memory rows remapped after corrected errors (Ampere and later).
        remapped_rows_uncorrected: memory rows remapped after uncorrected errors.
        remapped_rows_pending: a row will be remapped at the next reset.
        remapped_rows_failure: a row could not be remapped.
        retired_pages_single_bit: memory pages retired after single-bit errors (before Ampere).
        retired_pages_double_bit: memory pages retired after double-bit errors.
        retired_pages_pending: a page will be retired at the next reset.
        channel_repair_pending: a memory channel will be repaired at the next reset.
        tpc_repair_pending: a TPC will be repaired at the next reset.
        temperature_c: GPU temperature, in degrees Celsius.
        temperature_slowdown_c: temperature at which the GPU throttles.
        temperature_shutdown_c: temperature at which the GPU switches off.
        temperature_max_c: highest operating temperature.
        temperature_memory_c: memory temperature.
        temperature_memory_max_c: highest operating temperature of the memory.
        power_usage_mw: power draw, in milliwatts.
        power_limit_mw: power limit in force.
        power_limit_set_mw: power limit that was set; a lower one in force comes from the hardware.
        power_limit_default_mw: factory power limit.
        power_limit_min_mw: lowest limit that can be set.
        power_limit_max_mw: highest limit that can be set.
    """

    recovery_action: int | None = None
    inforom_valid: bool | None = None
    event_reasons: int | None = None
    ecc_volatile_corrected: int | None = None
    ecc_volatile_uncorrected: int | None = None
    ecc_aggregate_corrected: int | None = None
    ecc_aggregate_uncorrected: int | None = None
    sram_volatile_uncorrected: int | None = None
    sram_aggregate_uncorrected: int | None = None
    sram_aggregate_corrected: int | None = None
    dram_aggregate_corrected: int | None = None
    sram_threshold_exceeded: bool | None = None
    remapped_rows_corrected: int | None = None
    remapped_rows_uncorrected: int | None = None
    remapped_rows_pending: bool | None = None
    remapped_rows_failure: bool | None = None
    retired_pages_single_bit: int | None = None
    retired_pages_double_bit: int | None = None
    retired_pages_pending: bool | None = None
    channel_repair_pending: bool | None = None
    tpc_repair_pending: bool | None = None
    temperature_c: int | None = None
    temperature_slowdown_c: int | None = None
    temperature_shutdown_c: int | None = None
    temperature_max_c: int | None = None
    temperature_memory_c: int | None = None
    temperature_memory_max_c: int | None = None
    power_usage_mw: int | None = None
    power_limit_mw: int | None = None
    power_limit_set_mw: int | None = None
    power_limit_default_mw: int | None = None
    power_limit_min_mw: int | None = None
    power_limit_max_mw: int | None = None


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU.

    Attributes:
        index: NVML's index, the same as that of `nvidia-smi`, in the order of PCI addresses.
        error: set if the GPU as a whole failed: NVML returned no handle, or a call reported that it
            is lost (15) or needs a reset (16).
        unread: why values are missing, by dotted name; `handle` if nothing could be read.
        uuid: `GPU-…`, as CUDA_VISIBLE_DEVICES takes it.
        name: product name, as `nvidia-smi -L` prints it.
        brand: `GeForce`, `Tesla`, `NVIDIA` (data center since Ampere), …
        architecture: `Volta`, `Turing`, `Ampere`, `Ada`, `Hopper`, `Blackwell`, …
        cc_major: compute capability, major.
        cc_minor: compute capability, minor.
        pci_bdf: PCI address as Linux writes it (`0000:1b:00.0`).
        pci_device_id: PCI device id << 16 | vendor id.
        minor_number: N of /dev/nvidiaN.
        vbios: version of the card's BIOS.
        memory_total_bytes: memory of the card.
        memory_used_bytes: memory in use; includes the driver's reserve if memory_reserved_bytes is
            None.
        memory_free_bytes: free memory.
        memory_reserved_bytes: memory kept by driver and firmware (driver 510 and later).
        bar1_total_bytes: size of the BAR1 window, through which PCIe devices reach the memory.
        persistence_mode: the driver stays loaded while no program uses the GPU.
        compute_mode: a ComputeMode.
        display_active: a display is attached and in use.
        ecc_mode: ECC is on.
        ecc_mode_pending: ECC will be on after the next reboot.
        mig_mode: MIG is on.
        mig_mode_pending: MIG will be on after the next reset.
        mig_devices: its MIG devices; empty without MIG.
        virtualization: `NONE`, `PASSTHROUGH`, `VGPU`, `HOST_VGPU` or `HOST_VSGA`.
        licensed: a virtual GPU holds its license; None on other GPUs, and where it needs none.
        gsp_enabled: the driver runs on the GPU's own GSP firmware.
        gsp_default: it does so by default.
        gsp_version: version of that firmware; it should equal the driver's.
        processes: processes that use it; None if the driver does not list them.
        utilization_gpu_percent: share of the last sampling period in which a kernel ran.
        utilization_memory_percent: share of it in which memory was read or written.
        performance_state: P-state, 0 (fastest) to 15.
        clock_sm_mhz: SM clock, in MHz.
        clock_sm_max_mhz: highest SM clock.
        clock_memory_mhz: memory clock, in MHz.
        clock_memory_max_mhz: highest memory clock.
        health: ECC, temperature, power and repairs.
        pcie: its PCIe link.
        fabric: its registration with the NVLink fabric.
        cpu_affinity: numbers of the CPUs near it.
        numa_node: NUMA node of the host near it.
        gpu_numa_node: NUMA node of the GPU's own memory (Grace Hopper).
        links: every NVLink, including inactive ones; None if the GPU has none.
    """

    index: int
    error: NvmlError | None = None
    unread: dict[str, Unread] = msgspec.field(default_factory=dict)
    uuid: str | None = None
    name: str | None = None
    brand: str | None = None
    architecture: str | None = None
    cc_major: int | None = None
    cc_minor: int | None = None
    pci_bdf: str | None = None
    pci_device_id: int | None = None
    minor_number: int | None = None
    vbios: str | None = None
    memory_total_bytes: int | None = None
    memory_used_bytes: int | None = None
    memory_free_bytes: int | None = None
    memory_reserved_bytes: int | None = None
    bar1_total_bytes: int | None = None
    persistence_mode: bool | None = None
    compute_mode: int | None = None
    display_active: bool | None = None
    ecc_mode: bool | None = None
    ecc_mode_pending: bool | None = None
    mig_mode: bool | None = None
    mig_mode_pending: bool | None = None
    mig_devices: tuple[MigDevice, ...] | None = None
    virtualization: str | None = None
    licensed: bool | None = None
    gsp_enabled: bool | None = None
    gsp_default: bool | None = None
    gsp_version: str | None = None
    processes: tuple[GpuProcess, ...] | None = None
    utilization_gpu_percent: int | None = None
    utilization_memory_percent: int | None = None
    performance_state: int | None = None
    clock_sm_mhz: int | None = None
    clock_sm_max_mhz: int | None = None
    clock_memory_mhz: int | None = None
    clock_memory_max_mhz: int | None = None
    health: GpuHealth = msgspec.field(default_factory=GpuHealth)
    pcie: PcieLink = msgspec.field(default_factory=PcieLink)
    fabric: GpuFabric = msgspec.field(default_factory=GpuFabric)
    cpu_affinity: tuple[int, ...] | None = None
    numa_node: int | None = None
    gpu_numa_node: int | None = None
    links: tuple[GpuLink, ...] | None = None

    @property
    def cc(self) -> tuple[int, int] | None:
        """Compute capability, as (major, minor)."""
        if self.cc_major is None or self.cc_minor is None:
            return None
        return self.cc_major, self.cc_minor

    @property
    def active_links(self) -> tuple[GpuLink, ...]:
        """The active NVLinks."""
        return tuple(link for link in self.links or () if link.active)


class Nvml(Fact, frozen=True, kw_only=True):
    """The driver, or why NVML does not answer.

    Attributes:
        driver_version: version of the driver (`580.95.05`).
        nvml_version: version of the library (`13.580.95.05`).
        cuda_version: newest CUDA that the driver supports, as 1000 * major + 10 * minor (13000).
        error: set if NVML did not start or could not count its GPUs.
        unread: why versions are missing.
        slow_seconds: how long the whole read took, if longer than two seconds plus one for each
            GPU; None otherwise.
    """

    driver_version: str | None = None
    nvml_version: str | None = None
    cuda_version: int | None = None
    error: NvmlError | None = None
    unread: dict[str, Unread] = msgspec.field(default_factory=dict)
    slow_seconds: float | None = None


class Gpus(Fact, frozen=True, kw_only=True):
    """The GPUs of this machine.

    Attributes:
        gpus: the GPUs that were read, by index.
        count: how many GPUs NVML reports; larger than the length of `gpus` if the read was cut off.
        stopped_at: the step at which the read was cut off (`gpu 3: nvmlDeviceGetFieldValues`): the
            call that hung or crashed; None if the read was complete.
    """

    gpus: Annotated[tuple[Gpu, ...], msgspec.Meta(max_length=MOST_GPUS)] = ()
    count: int | None = None
    stopped_at: str | None = None


class GpuPair(msgspec.Struct, frozen=True, kw_only=True):
    """How two GPUs reach each other.

    Attributes:
        a: index of one GPU, the lower one.
        b: index of the other.
        ancestor: nearest common ancestor: `INTERNAL` (one board), `SINGLE` (one PCIe switch),
            `MULTIPLE` (several), `HOSTBRIDGE`, `NODE` (one NUMA node) or `SYSTEM`.
        p2p_read: whether one can read the other's memory, according to the driver: `OK`,
            `CHIPSET_NOT_SUPPORTED`, `GPU_NOT_SUPPORTED`, `IOH_TOPOLOGY_NOT_SUPPORTED`,
            `DISABLED_BY_REGKEY`, `NOT_SUPPORTED` or `UNKNOWN`.
        p2p_write: the same for writes.
        p2p_nvlink: the same over NVLink.
        nvlinks: active NVLinks between the two, directly or through NVSwitch; None if the links of
            one of the two are unknown.
        unread: why values are missing.
    """

    a: int
    b: int
    ancestor: str | None = None
    p2p_read: str | None = None
    p2p_write: str | None = None
    p2p_nvlink: str | None = None
    nvlinks: int | None = None
    unread: dict[str, Unread] = msgspec.field(default_factory=dict)

    @property
    def label(self) -> str | None:
        """What `nvidia-smi topo -m` prints for the pair (`NV18`, `PIX`), or None if unknown."""
        if self.nvlinks is None:
            return None
        if self.nvlinks:
            return f"NV{self.nvlinks}"
        return _LABELS.get(self.ancestor or "", self.ancestor)


_LABELS = {
    "SINGLE": "PIX",
    "MULTIPLE": "PXB",
    "HOSTBRIDGE": "PHB",
    "SYSTEM": "SYS",
}


class GpuTopology(Fact, frozen=True, kw_only=True, dict=True):
    """How the GPUs reach each other.

    Attributes:
        pairs: every pair once; empty with fewer than two GPUs.
    """

    pairs: Annotated[tuple[GpuPair, ...], msgspec.Meta(max_length=MOST_GPUS**2 // 2)] = ()

    def pair(self, a: int, b: int) -> GpuPair | None:
        """The pair of two GPUs, in either order."""
        return self._by_ends.get((min(a, b), max(a, b)))

    @functools.cached_property
    def _by_ends(self) -> dict[tuple[int, int], GpuPair]:
        return {(pair.a, pair.b): pair for pair in reversed(self.pairs)}
