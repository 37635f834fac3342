"""Facts about the NVIDIA driver and its GPUs, as NVML tells them.

None means that the value could not be read or has no meaning there. Where it could not be read,
`unread` of the GPU (or of the pair) says why, under the value's dotted name
(`health.recovery_action`, `links.3.speed_mbps`, `processes.graphics`) or that of its group
(`links`, `fabric`).

Enumerations whose names people know (brand, architecture, topology, P2P) are names; a value that
NVML has added since is `UNKNOWN_<value>`. Those that are compared by value stay numbers.
"""

from __future__ import annotations

import enum

import msgspec

from dsdoctor.model.facts.base import Fact


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
    """What the driver asks for to bring a GPU back: the values of `GpuHealth.recovery_action`."""

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
    """How far the GPU has joined the NVLink fabric: the values of `GpuFabric.state`."""

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

    code: NVML's return code (3 not supported, 4 no permission, 13 no such function in this driver
        or this pynvml, 15 GPU lost), or None where it was no NVML error
    name: name of the code without its prefix (`NOT_SUPPORTED`), or of the Python exception
    """

    code: int | None
    name: str


class NvmlError(msgspec.Struct, frozen=True, kw_only=True):
    """An error that stops more than one value from being read.

    code: NVML's return code (9 driver not loaded, 12 library not found, 15 GPU lost, 18 library and
        kernel module of different versions), or None where pynvml itself could not be imported
    name: name of the code without its prefix; `PYNVML_IMPORT` where pynvml could not be imported
    message: the error in pynvml's words
    call: what was called: a function of pynvml, or `import pynvml`
    """

    code: int | None
    name: str
    message: str
    call: str


class GpuProcess(msgspec.Struct, frozen=True, kw_only=True):
    """A process that uses a GPU.

    pid: process id, in the name space of the host; in a container it may name nobody
    kind: `compute`, `graphics` or `mps`; a process can appear once for each
    used_bytes: memory that it holds, or None where the platform does not tell (WSL)
    gpu_instance_id: the MIG instance that it runs on, or None on a whole GPU
    """

    pid: int
    kind: str
    used_bytes: int | None = None
    gpu_instance_id: int | None = None


class MigDevice(msgspec.Struct, frozen=True, kw_only=True):
    """A slice of a GPU.

    index: number among the MIG devices of its GPU; numbers may be missing in between
    uuid: `MIG-…`, what CUDA_VISIBLE_DEVICES takes
    name: full name, of newer drivers with the profile at its end
    profile: size of the slice, as `nvidia-smi` prints it (`3g.40gb`)
    gpu_instance_id, compute_instance_id: NVML's numbers for the slice
    memory_total_bytes, memory_used_bytes: memory of the slice
    memory_mib: memory of the slice by its profile, in MiB
    gpu_slices, compute_slices: how many of the GPU's (usually seven) slices it has
    multiprocessors: how many SMs it has
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
    """One NVLink of a GPU; of an inactive one only the state is known.

    link: number of the link on its GPU
    state: 1 active, 0 inactive
    remote_bdf: PCI address of the other end (`0000:1b:00.0`)
    remote_type: `GPU`, `SWITCH`, `IBMNPU` or `UNKNOWN`
    version: NVML_NVLINK_VERSION_*: 3 is NVLink 2.2, 4 3.0, 5 3.1, 6 4.0, 7 5.0, 8 6.0
    speed_mbps: raw speed in MB/s, in each direction
    errors_replay, errors_recovery, errors_crc_flit, errors_crc_data: error counts since the last
        reset; read only when slower questions are allowed
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
        """Whether the link is up."""
        return self.state == 1


class PcieErrors(msgspec.Struct, frozen=True, kw_only=True):
    """PCIe errors since the driver was loaded (counts, named after NVML's fields 173-183)."""

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

    generation: what the link runs at now; falls when the GPU is idle, so judge it under load only
    max_generation: what GPU and slot together can do
    gpu_max_generation: what the GPU alone could do; above max_generation the slot is the limit
    width: lanes in use now
    max_width: lanes that GPU and slot together have
    replay_counter: packets that were sent again
    replay_rollover_counter: how often that counter has overflowed
    errors: error counts
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

    state: a FabricState; 0 on boards without a fabric, A100 boards with NVSwitch included
    status: in state COMPLETED the NVML return code of the registration, 0 if it went well
    clique: number of the group of GPUs that reach each other
    health_mask: NVML_GPU_FABRIC_HEALTH_MASK_* bits
    health_summary: a FabricHealth; None where the driver knows none yet
    """

    state: int | None = None
    status: int | None = None
    clique: int | None = None
    health_mask: int | None = None
    health_summary: int | None = None


class GpuHealth(msgspec.Struct, frozen=True, kw_only=True):
    """What tells whether a GPU is well.

    recovery_action: a RecoveryAction (driver 570 and later)
    inforom_valid: whether the checksum of the card's own configuration store is right
    event_reasons: EventReason bits; IDLE and SW_POWER_CAP are normal
    ecc_volatile_corrected, ecc_volatile_uncorrected: memory errors since the driver was loaded
    ecc_aggregate_corrected, ecc_aggregate_uncorrected: memory errors in the life of the card
    sram_volatile_uncorrected, sram_aggregate_uncorrected, sram_aggregate_corrected,
    dram_aggregate_corrected: the same by place
    sram_threshold_exceeded: whether the driver deems the SRAM due for replacement (root only)
    remapped_rows_corrected, remapped_rows_uncorrected: memory rows replaced, by cause (Ampere on)
    remapped_rows_pending: a row is to be replaced at the next reset
    remapped_rows_failure: a row could not be replaced
    retired_pages_single_bit, retired_pages_double_bit: memory pages out of use (before Ampere)
    retired_pages_pending: a page goes out of use at the next reset
    channel_repair_pending, tpc_repair_pending: the next reset repairs something
    temperature_c: the GPU now, in degrees Celsius
    temperature_slowdown_c, temperature_shutdown_c: where the GPU throttles, and switches off
    temperature_max_c: highest temperature that it is meant to run at
    temperature_memory_c, temperature_memory_max_c: the memory now, and at most
    power_usage_mw: power drawn now, in milliwatts
    power_limit_mw: the limit in force
    power_limit_default_mw: the limit that the card comes with
    power_limit_min_mw, power_limit_max_mw: the range that the limit can be set to
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
    power_limit_default_mw: int | None = None
    power_limit_min_mw: int | None = None
    power_limit_max_mw: int | None = None


class Gpu(msgspec.Struct, frozen=True, kw_only=True):
    """One GPU.

    index: NVML's number, which is that of `nvidia-smi`, in the order of PCI addresses
    error: set when the GPU as a whole is in trouble: it gave no handle, or a call said that it is
        lost (15) or needs a reset (16)
    unread: why values are missing, by their dotted names; `handle` when nothing could be asked
    uuid: `GPU-…`, what CUDA_VISIBLE_DEVICES takes
    name: as `nvidia-smi -L` prints it
    brand: `GeForce`, `Tesla`, `NVIDIA` (data centre since Ampere), …
    architecture: `Volta`, `Turing`, `Ampere`, `Ada`, `Hopper`, `Blackwell`, …
    cc_major, cc_minor: compute capability
    pci_bdf: PCI address as Linux writes it (`0000:1b:00.0`)
    pci_device_id: PCI device id << 16 | vendor id
    minor_number: N of /dev/nvidiaN
    vbios: version of the card's BIOS
    memory_total_bytes: memory of the card
    memory_used_bytes: in use; counts what the driver reserves if memory_reserved_bytes is None
    memory_free_bytes: free
    memory_reserved_bytes: kept by driver and firmware (driver 510 and later)
    bar1_total_bytes: window through which PCIe devices reach the memory
    persistence_mode: whether the driver stays loaded while nobody uses the GPU
    compute_mode: a ComputeMode
    display_active: whether a screen is driven
    ecc_mode, ecc_mode_pending: error correction now, and after the next reboot
    mig_mode, mig_mode_pending: slicing now, and after the next reset
    mig_devices: the slices; empty without MIG
    virtualization: `NONE`, `PASSTHROUGH`, `VGPU`, `HOST_VGPU` or `HOST_VSGA`
    gsp_enabled, gsp_default: whether firmware on the GPU does the driver's work, and by default
    gsp_version: version of that firmware; should be the driver's
    processes: who uses it, or None where that is not told
    utilization_gpu_percent, utilization_memory_percent: busy time in the last moments
    performance_state: 0 (fastest) to 15
    clock_sm_mhz, clock_sm_max_mhz, clock_memory_mhz, clock_memory_max_mhz: clocks
    health, pcie, fabric: see there
    cpu_affinity: numbers of the CPUs that are near
    numa_node: NUMA node of the host that is near
    gpu_numa_node: NUMA node that the GPU's own memory is (Grace Hopper)
    links: every NVLink, the inactive ones too; None where the GPU has none
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
        """The NVLinks that are up."""
        return tuple(link for link in self.links or () if link.active)


class Nvml(Fact, frozen=True, kw_only=True):
    """The driver, or why NVML does not answer.

    driver_version: version of the driver (`580.95.05`)
    nvml_version: version of the library (`13.580.95.05`)
    cuda_version: newest CUDA that the driver serves, as 1000 * major + 10 * minor (13000)
    error: set when NVML did not start or could not count its GPUs
    unread: why versions are missing
    slow_seconds: how long the whole reading took, if that was more than a second for each GPU and
        two besides; None for an answer in usual time
    """

    driver_version: str | None = None
    nvml_version: str | None = None
    cuda_version: int | None = None
    error: NvmlError | None = None
    unread: dict[str, Unread] = msgspec.field(default_factory=dict)
    slow_seconds: float | None = None


class Gpus(Fact, frozen=True, kw_only=True):
    """The GPUs.

    gpus: those that were examined, by index
    count: how many NVML said there are; more than `gpus` holds when the reading was cut off
    stopped_at: the step at which it was cut off (`gpu 3: nvmlDeviceGetFieldValues`), the call that
        hung or crashed; None when the reading came to its end
    """

    gpus: tuple[Gpu, ...] = ()
    count: int | None = None
    stopped_at: str | None = None


class GpuPair(msgspec.Struct, frozen=True, kw_only=True):
    """How two GPUs reach each other.

    a, b: indices of the two, a < b
    ancestor: nearest point that they share: `INTERNAL` (one board), `SINGLE` (one PCIe switch),
        `MULTIPLE` (several), `HOSTBRIDGE`, `NODE` (one NUMA node) or `SYSTEM`
    p2p_read, p2p_write, p2p_nvlink: whether one can reach the other's memory, by the driver's word:
        `OK`, `CHIPSET_NOT_SUPPORTED`, `GPU_NOT_SUPPORTED`, `IOH_TOPOLOGY_NOT_SUPPORTED`,
        `DISABLED_BY_REGKEY`, `NOT_SUPPORTED` or `UNKNOWN`
    nvlinks: active NVLinks between the two, directly or by NVSwitch; None if the links of one of
        the two are not known
    unread: why values are missing
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
        """What `nvidia-smi topo -m` prints for the pair (`NV18`, `PIX`), None if not known."""
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


class GpuTopology(Fact, frozen=True, kw_only=True):
    """How the GPUs reach each other.

    pairs: every pair once; empty with fewer than two GPUs
    """

    pairs: tuple[GpuPair, ...] = ()

    def pair(self, a: int, b: int) -> GpuPair | None:
        """Return the pair of two GPUs, in whichever order."""
        wanted = (min(a, b), max(a, b))
        return next((pair for pair in self.pairs if (pair.a, pair.b) == wanted), None)
