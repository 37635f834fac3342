r"""Query NVML about the GPUs; run as a script in a process of its own.

    python nvml.py [--deep-ok]

Any NVML call may hang in the driver, so dsdoctor runs this with a deadline and kills it. To
preserve earlier results, every record is written at once, as one line on stdout:

    \x1edsdoctor:{json}

    {"step": "gpu 3: nvmlDeviceGetFieldValues"}    before a call: the last one names what hangs
    {"fact": "driver", "value": {...}}             versions
    {"fact": "gpu_count", "value": 8}
    {"fact": "gpu", "value": {...}}                one for each GPU, as soon as it has been read
    {"fact": "topology", "value": {"pairs": [...]}}
    {"fact": "nvml_error", "value": {...}}         instead of all these: NVML does not start
    {"done": true}

A value that could not be read is null and listed in "unread" of its GPU (or pair) under its dotted
name, with NVML's code: {"health.recovery_action": {"code": 3, "name": "NOT_SUPPORTED"}}, or as part
of its group ("links", "fabric"). A null without such an entry was not asked for: it has no meaning
there (the far end of an inactive link).

Nothing here changes the machine: no setter, no event registration. Standard library and pynvml
only, Python 3.8 and later, since the interpreter may be that of the environment under examination.
--deep-ok adds slower questions: the error counters of every NVLink.

Over 400 lines because it runs as one script, in an interpreter that cannot import dsdoctor.
"""

from __future__ import annotations

import ctypes
import importlib
import json
import os
import sys
import types
from typing import Any, Callable, NamedTuple, Sequence, Tuple

SENTINEL = "\x1edsdoctor:"

NOT_SUPPORTED = 3
INVALID_ARGUMENT = 2
NOT_FOUND = 6
FUNCTION_NOT_FOUND = 13
CORRUPTED_INFOROM = 14
GPU_IS_LOST = 15
RESET_REQUIRED = 16
NO_DATA = 21
VERSION_MISMATCH = 25

# Not pynvml's tables: it may be older than the driver, or lack a name.
BRANDS = {
    0: "Unknown", 1: "Quadro", 2: "Tesla", 3: "NVS", 4: "GRID", 5: "GeForce", 6: "Titan",
    7: "NVIDIA vApps", 8: "NVIDIA vPC", 9: "NVIDIA vCS", 10: "NVIDIA vWS",
    11: "NVIDIA Cloud Gaming", 12: "Quadro RTX", 13: "NVIDIA RTX", 14: "NVIDIA",
    15: "GeForce RTX", 16: "Titan RTX",
}  # fmt: skip
ARCHITECTURES = {
    2: "Kepler", 3: "Maxwell", 4: "Pascal", 5: "Volta", 6: "Turing", 7: "Ampere", 8: "Ada",
    9: "Hopper", 10: "Blackwell", 13: "Rubin",
}  # fmt: skip
VIRTUALIZATION = {0: "NONE", 1: "PASSTHROUGH", 2: "VGPU", 3: "HOST_VGPU", 4: "HOST_VSGA"}
ANCESTORS = {
    0: "INTERNAL", 10: "SINGLE", 20: "MULTIPLE", 30: "HOSTBRIDGE", 40: "NODE", 50: "SYSTEM",
}  # fmt: skip
P2P = {
    0: "OK", 1: "CHIPSET_NOT_SUPPORTED", 2: "GPU_NOT_SUPPORTED", 3: "IOH_TOPOLOGY_NOT_SUPPORTED",
    4: "DISABLED_BY_REGKEY", 5: "NOT_SUPPORTED", 6: "UNKNOWN",
}  # fmt: skip
# As integers: in pynvml 13.615 NVML_P2P_CAPS_INDEX_READ is the tuple (0,).
P2P_CAPABILITIES = (("p2p_read", 0), ("p2p_write", 1), ("p2p_nvlink", 2))
REMOTE_TYPES = {0: "GPU", 1: "IBMNPU", 2: "SWITCH", 255: "UNKNOWN"}

# Field ids; 251-273 were renumbered between drivers, so none of those.
FIELD_MEMORY_TEMPERATURE = 82
FIELD_LINK_COUNT = 91
FIELD_REPLAY_ROLLOVER = 95
FIELD_LINK_SPEED = 164
FIELD_RECOVERY_ACTION = 230
# Before field 164, one id a link: L0-L5, then L6-L11.
FIELDS_LINK_SPEED_OLD = (84, 85, 86, 87, 88, 89, 132, 133, 134, 135, 136, 137)
PCIE_ERRORS = (
    "correctable", "naks_received", "receiver", "bad_tlp", "naks_sent", "bad_dllp", "non_fatal",
    "fatal", "unsupported_request", "lcrc", "lane",
)  # fmt: skip
FIELD_PCIE_ERRORS = 173

MAX_LINKS = 64
LINK_ERRORS = ("replay", "recovery", "crc_flit", "crc_data")
# nvmlFieldValue_t.valueType -> member of the union
VALUE_TYPES = ("dVal", "uiVal", "ulVal", "ullVal", "sllVal", "siVal", "usVal")
CPU_WORDS = 64
NODE_WORDS = 16
NO_INSTANCE = 0xFFFFFFFF

Path = str
Field = Tuple[int, int]
Convert = Callable[[Any], Sequence[object]]


class Unread(NamedTuple):
    """Why a value could not be read."""

    code: int | None
    name: str

    def record(self) -> dict[str, object]:
        """Return this as it appears in a record."""
        return {"code": self.code, "name": self.name}


class Answer(NamedTuple):
    """What a call returned, or why it did not."""

    value: Any
    unread: Unread | None


def emit(record: dict[str, object]) -> None:
    """Write one record at once, so that it is out before the next call hangs."""
    data = (SENTINEL + json.dumps(record, separators=(",", ":")) + "\n").encode("ascii")
    while data:
        data = data[os.write(1, data) :]


class Nvml:
    """pynvml, with every failure turned into a value and every call announced."""

    def __init__(self, pynvml: Any) -> None:
        self._pynvml = pynvml
        self._step = ""
        self._names = {
            value: name[len("NVML_ERROR_") :]
            for name, value in vars(pynvml).items()
            if name.startswith("NVML_ERROR_") and isinstance(value, int)
        }

    def step(self, where: str, what: str) -> None:
        """Announce a call; a run of the same call on the same GPU is announced once."""
        step = where + what
        if step != self._step:
            self._step = step
            emit({"step": step})

    def unread(self, code: int) -> Unread:
        """Return the reason that NVML's `code` means."""
        return Unread(code, self._names.get(code, f"ERROR_{code}"))

    def error(self, unread: Unread, call: str) -> dict[str, object]:
        """Return the record of a failure that stops more than one value."""
        try:
            message = str(self._pynvml.NVMLError(unread.code))
        except Exception as error:  # a code that this pynvml cannot put in words
            message = type(error).__name__
        return {"code": unread.code, "name": unread.name, "message": message, "call": call}

    def struct(self, name: str) -> Any:
        """Return a new struct of pynvml, or None if this pynvml does not have it."""
        kind = getattr(self._pynvml, name, None)
        return None if kind is None else kind()

    def constant(self, name: str) -> Any:
        """Return a constant of pynvml, or None."""
        return getattr(self._pynvml, name, None)

    def call(self, where: str, function: str, *args: Any) -> Answer:
        """Call `function`; `where` ("gpu 3: ") says of which GPU."""
        target = getattr(self._pynvml, function, None)
        if target is None:
            return Answer(None, self.unread(FUNCTION_NOT_FOUND))
        self.step(where, function)
        try:
            return Answer(target(*args), None)
        except self._pynvml.NVMLError as error:
            return Answer(None, self.unread(int(error.value)))
        except Exception as error:  # bytes that are not text, a changed signature
            if type(error).__name__ == "NVMLLibraryMismatchError":
                # pynvml raises this for a missing symbol of a versioned function
                return Answer(None, self.unread(FUNCTION_NOT_FOUND))
            return Answer(None, Unread(None, type(error).__name__))


# ---- from NVML's return values to values of a record --------------------------------------------


def text(value: Any) -> list[object]:
    """Return a text; old versions of pynvml return bytes."""
    return [value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)]


def number(value: Any) -> list[object]:
    """Return a number."""
    return [int(value)]


def numbers(value: Any) -> list[object]:
    """Return several numbers."""
    return [int(item) for item in value]


def flag(value: Any) -> list[object]:
    """Return a yes or no."""
    return [bool(value)]


def flags(value: Any) -> list[object]:
    """Return several yes or no."""
    return [bool(item) for item in value]


def named(names: dict[int, str]) -> Convert:
    """Return a converter from an enum value to its name; a new value becomes UNKNOWN_<value>."""

    def name_of(value: Any) -> list[object]:
        return [names.get(int(value), f"UNKNOWN_{int(value)}")]

    return name_of


def licensed(value: Any) -> list[object]:
    """Return whether one of the licenses that the GPU may need is held; None if it needs none."""
    if not value.isGridLicenseSupported:
        return [None]
    features = value.gridLicensableFeatures[: value.licensableFeaturesCount]
    return [any(feature.featureState for feature in features)]


def bits(words: Any) -> list[int]:
    """Return the numbers of the bits that are set in an array of 64-bit words."""
    return [64 * i + bit for i, word in enumerate(words) for bit in range(64) if word >> bit & 1]


def bus_address(value: Any) -> str:
    """Return a PCI address as Linux writes it: 0000:1b:00.0."""
    function = str(text(value.busId)[0]).rpartition(".")[2] or "0"
    return f"{value.domain:04x}:{value.bus:02x}:{value.device:02x}.{function.lower()}"


def pci(value: Any) -> list[object]:
    """Return the address and the id (device << 16 | vendor) of a PCI device."""
    return [bus_address(value), int(value.pciDeviceId)]


# ---- one GPU -----------------------------------------------------------------------------------

# What one call answers for one or more values: their names, the function, further arguments, and
# how to convert what it returns.
Question = Tuple[Tuple[Path, ...], str, Tuple[Any, ...], Convert]

IDENTITY: tuple[Question, ...] = (
    (("uuid",), "nvmlDeviceGetUUID", (), text),
    (("name",), "nvmlDeviceGetName", (), text),
    (("pci_bdf", "pci_device_id"), "nvmlDeviceGetPciInfo", (), pci),
    (("brand",), "nvmlDeviceGetBrand", (), named(BRANDS)),
    (("architecture",), "nvmlDeviceGetArchitecture", (), named(ARCHITECTURES)),
    (("cc_major", "cc_minor"), "nvmlDeviceGetCudaComputeCapability", (), numbers),
    (("minor_number",), "nvmlDeviceGetMinorNumber", (), number),
    (("vbios",), "nvmlDeviceGetVbiosVersion", (), text),
)

MODES: tuple[Question, ...] = (
    (("persistence_mode",), "nvmlDeviceGetPersistenceMode", (), flag),
    (("compute_mode",), "nvmlDeviceGetComputeMode", (), number),
    (("display_active",), "nvmlDeviceGetDisplayActive", (), flag),
    (("ecc_mode", "ecc_mode_pending"), "nvmlDeviceGetEccMode", (), flags),
    (("mig_mode", "mig_mode_pending"), "nvmlDeviceGetMigMode", (), flags),
    (("virtualization",), "nvmlDeviceGetVirtualizationMode", (), named(VIRTUALIZATION)),
    (("gsp_enabled", "gsp_default"), "nvmlDeviceGetGspFirmwareMode", (), flags),
    (("gsp_version",), "nvmlDeviceGetGspFirmwareVersion", (), text),
)

LOAD: tuple[Question, ...] = (
    (("performance_state",), "nvmlDeviceGetPerformanceState", (), number),
    (("clock_sm_mhz",), "nvmlDeviceGetClockInfo", (1,), number),
    (("clock_memory_mhz",), "nvmlDeviceGetClockInfo", (2,), number),
    (("clock_sm_max_mhz",), "nvmlDeviceGetMaxClockInfo", (1,), number),
    (("clock_memory_max_mhz",), "nvmlDeviceGetMaxClockInfo", (2,), number),
)

# (0, 0): corrected, volatile. Location 7 is SRAM, 2 DRAM.
HEALTH: tuple[Question, ...] = (
    (("health.ecc_volatile_corrected",), "nvmlDeviceGetTotalEccErrors", (0, 0), number),
    (("health.ecc_volatile_uncorrected",), "nvmlDeviceGetTotalEccErrors", (1, 0), number),
    (("health.ecc_aggregate_corrected",), "nvmlDeviceGetTotalEccErrors", (0, 1), number),
    (("health.ecc_aggregate_uncorrected",), "nvmlDeviceGetTotalEccErrors", (1, 1), number),
    (
        ("health.sram_volatile_uncorrected",),
        "nvmlDeviceGetMemoryErrorCounter", (1, 0, 7), number,
    ),
    (
        ("health.sram_aggregate_uncorrected",),
        "nvmlDeviceGetMemoryErrorCounter", (1, 1, 7), number,
    ),
    (("health.sram_aggregate_corrected",), "nvmlDeviceGetMemoryErrorCounter", (0, 1, 7), number),
    (("health.dram_aggregate_corrected",), "nvmlDeviceGetMemoryErrorCounter", (0, 1, 2), number),
    (
        (
            "health.remapped_rows_corrected", "health.remapped_rows_uncorrected",
            "health.remapped_rows_pending", "health.remapped_rows_failure",
        ),
        "nvmlDeviceGetRemappedRows", (),
        lambda rows: numbers(rows[:2]) + flags(rows[2:]),
    ),
    (
        ("health.retired_pages_single_bit",),
        "nvmlDeviceGetRetiredPages", (0,), lambda pages: [len(pages)],
    ),
    (
        ("health.retired_pages_double_bit",),
        "nvmlDeviceGetRetiredPages", (1,), lambda pages: [len(pages)],
    ),
    (("health.retired_pages_pending",), "nvmlDeviceGetRetiredPagesPendingStatus", (), flag),
    (
        ("health.channel_repair_pending", "health.tpc_repair_pending"),
        "nvmlDeviceGetRepairStatus", (), flags,
    ),
    (("health.temperature_shutdown_c",), "nvmlDeviceGetTemperatureThreshold", (0,), number),
    (("health.temperature_slowdown_c",), "nvmlDeviceGetTemperatureThreshold", (1,), number),
    (("health.temperature_memory_max_c",), "nvmlDeviceGetTemperatureThreshold", (2,), number),
    (("health.temperature_max_c",), "nvmlDeviceGetTemperatureThreshold", (3,), number),
    (("health.power_usage_mw",), "nvmlDeviceGetPowerUsage", (), number),
    (("health.power_limit_mw",), "nvmlDeviceGetEnforcedPowerLimit", (), number),
    (("health.power_limit_set_mw",), "nvmlDeviceGetPowerManagementLimit", (), number),
    (("health.power_limit_default_mw",), "nvmlDeviceGetPowerManagementDefaultLimit", (), number),
    (
        ("health.power_limit_min_mw", "health.power_limit_max_mw"),
        "nvmlDeviceGetPowerManagementLimitConstraints", (), numbers,
    ),
)  # fmt: skip

PCIE: tuple[Question, ...] = (
    (("pcie.generation",), "nvmlDeviceGetCurrPcieLinkGeneration", (), number),
    (("pcie.max_generation",), "nvmlDeviceGetMaxPcieLinkGeneration", (), number),
    (("pcie.gpu_max_generation",), "nvmlDeviceGetGpuMaxPcieLinkGeneration", (), number),
    (("pcie.width",), "nvmlDeviceGetCurrPcieLinkWidth", (), number),
    (("pcie.max_width",), "nvmlDeviceGetMaxPcieLinkWidth", (), number),
    (("pcie.replay_counter",), "nvmlDeviceGetPcieReplayCounter", (), number),
)


class Gpu:
    """The reading of one GPU: `value` grows into the record."""

    def __init__(self, nvml: Nvml, index: int, *, deep: bool) -> None:
        self._nvml = nvml
        self._where = f"gpu {index}: "
        self._deep = deep
        self._unread: dict[str, dict[str, object]] = {}
        self._lost: Unread | None = None
        self.handle: Any = None
        self.value: dict[str, Any] = {"index": index, "error": None, "unread": self._unread}

    # -- the ways to ask --

    def call(self, function: str, *args: Any) -> Answer:
        """Call `function` for this GPU; a lost GPU is not queried again."""
        return self.call_on(self.handle, function, *args)

    def call_on(self, handle: Any, function: str, *args: Any) -> Answer:
        """Call `function` for a handle of this GPU: its own or that of a MIG device."""
        if self._lost is not None:
            return Answer(None, self._lost)
        answer = self._nvml.call(self._where, function, handle, *args)
        if answer.unread is not None:
            self._note(answer.unread, function)
        return answer

    def _note(self, unread: Unread, function: str) -> None:
        """Remember a failure that concerns the GPU as a whole."""
        if unread.code not in (GPU_IS_LOST, RESET_REQUIRED):
            return
        if self.value["error"] is None:
            self.value["error"] = self._nvml.error(unread, function)
        if unread.code == GPU_IS_LOST:
            self._lost = unread

    def put(self, path: Path, value: object) -> None:
        """Set the value with the dotted name `path`."""
        at = self.value
        keys = path.split(".")
        for key in keys[:-1]:
            at = at.setdefault(key, {})
        at[keys[-1]] = value

    def miss(self, path: Path, unread: Unread | None) -> None:
        """Set the value to null and say why."""
        self.put(path, None)
        if unread is not None:
            self._unread[path] = unread.record()

    def fill(self, paths: Sequence[Path], answer: Answer, convert: Convert) -> None:
        """Set the values that one call answers for, or the reason why it did not."""
        unread = answer.unread
        if unread is None:
            try:
                values = convert(answer.value)
            except Exception as error:  # an answer of another type counts as unread
                unread = Unread(None, type(error).__name__)
            else:
                for path, value in zip(paths, values):
                    self.put(path, value)
                return
        for path in paths:
            self.miss(path, unread)

    def ask(self, questions: Sequence[Question]) -> None:
        """Ask a table of questions."""
        for paths, function, args, convert in questions:
            self.fill(paths, self.call(function, *args), convert)

    def first(self, *calls: tuple[Any, ...]) -> Answer:
        """Return the first answer: later calls are for drivers that do not offer the first."""
        answer = Answer(None, None)
        for call in calls:
            latest = self.call(*call)
            lacking = latest.unread is not None and latest.unread.code == FUNCTION_NOT_FOUND
            # "Not supported" is more informative than a missing alternative.
            if answer.unread is None or not lacking:
                answer = latest
            if answer.unread is None or answer.unread.code not in (
                NOT_SUPPORTED, FUNCTION_NOT_FOUND, VERSION_MISMATCH,
            ):  # fmt: skip
                break
        return answer

    def fields(self, wanted: dict[Path, Field]) -> dict[Path, Answer]:
        """Read field values by (id, scope)."""
        ids = list(wanted.values())
        answer = self.call("nvmlDeviceGetFieldValues", ids)
        if answer.unread is None:
            values = list(answer.value)
        elif answer.unread.code == INVALID_ARGUMENT and len(ids) > 1:
            # Some driver may refuse the whole list for one id that it does not know.
            return {path: self.fields({path: field})[path] for path, field in wanted.items()}
        else:
            return dict.fromkeys(wanted, answer)
        return {path: self._field(value) for path, value in zip(wanted, values)}

    def _field(self, field: Any) -> Answer:
        if field.nvmlReturn != 0:
            unread = self._nvml.unread(int(field.nvmlReturn))
            self._note(unread, "nvmlDeviceGetFieldValues")
            return Answer(None, unread)
        if not 0 <= field.valueType < len(VALUE_TYPES):
            return Answer(None, Unread(None, f"VALUE_TYPE_{field.valueType}"))
        return Answer(getattr(field.value, VALUE_TYPES[field.valueType]), None)

    # -- the groups --

    def read(self) -> None:
        """Read everything; a bug in one group does not affect the others."""
        for group in (
            self.identity, self.memory, self.modes, self.processes, self.load, self.health,
            self.pcie, self.license, self.fabric, self.affinity, self.links, self.mig_devices,
        ):  # fmt: skip
            try:
                group()
            except Exception as error:  # "nothing raises"
                self._unread[group.__name__] = Unread(None, type(error).__name__).record()

    def open(self) -> bool:
        """Get the handle; without it nothing can be read."""
        index = self.value["index"]
        function = "nvmlDeviceGetHandleByIndex"
        answer = self._nvml.call(self._where, function, index)
        self.handle = answer.value
        if answer.unread is not None:
            self.value["error"] = self._nvml.error(answer.unread, function)
            self._unread["handle"] = answer.unread.record()
            self._lost = answer.unread
        return answer.unread is None

    def identity(self) -> None:
        """Read the GPU's identity; not the serial number, which is private."""
        self.ask(IDENTITY)

    def memory(self) -> None:
        """Read the memory; version 2 separates what the driver reserves from what is used."""
        answer = Answer(None, self._nvml.unread(FUNCTION_NOT_FOUND))
        version = self._nvml.constant("nvmlMemory_v2")
        if version is not None:
            answer = self.call("nvmlDeviceGetMemoryInfo", version)
        names = ("memory_total_bytes", "memory_used_bytes", "memory_free_bytes")
        if answer.unread is None:
            self.put("memory_reserved_bytes", int(answer.value.reserved))
        else:
            self.miss("memory_reserved_bytes", answer.unread)
            answer = self.call("nvmlDeviceGetMemoryInfo")
        self.fill(names, answer, lambda m: numbers((m.total, m.used, m.free)))
        bar1 = self.call("nvmlDeviceGetBAR1MemoryInfo")
        self.fill(("bar1_total_bytes",), bar1, lambda m: [int(m.bar1Total)])

    def modes(self) -> None:
        """Read the modes."""
        self.ask(MODES)

    def processes(self) -> None:
        """Read which processes use the GPU."""
        found: list[object] = []
        self.put("processes", found)
        for kind, name in (("compute", "Compute"), ("graphics", "Graphics"), ("mps", "MPSCompute")):
            function = f"nvmlDeviceGet{name}RunningProcesses"
            # _v3 came with driver 515; an older pynvml knows neither suffix.
            answer = self.first((function + "_v3",), (function + "_v2",), (function,))
            if answer.unread is None:
                found += [_process(kind, process) for process in answer.value]
            elif kind == "compute":
                # A list without them would look like a free GPU.
                self.miss("processes", answer.unread)
            else:
                self._unread[f"processes.{kind}"] = answer.unread.record()

    def load(self) -> None:
        """Read how busy the GPU is."""
        answer = self.call("nvmlDeviceGetUtilizationRates")
        names = ("utilization_gpu_percent", "utilization_memory_percent")
        self.fill(names, answer, lambda rates: numbers((rates.gpu, rates.memory)))
        self.ask(LOAD)

    def health(self) -> None:
        """Read what shows whether the GPU is healthy."""
        path = "health.recovery_action"
        self.fill((path,), self.fields({path: (FIELD_RECOVERY_ACTION, 0)})[path], number)
        path = "health.temperature_memory_c"
        self.fill((path,), self.fields({path: (FIELD_MEMORY_TEMPERATURE, 0)})[path], number)

        # A corrupted InfoROM is the answer, not a failure to get one.
        inforom = self.call("nvmlDeviceValidateInforom")
        if inforom.unread is not None and inforom.unread.code == CORRUPTED_INFOROM:
            self.put("health.inforom_valid", False)
        else:
            self.fill(("health.inforom_valid",), inforom, lambda _: [True])

        reasons = self.first(
            ("nvmlDeviceGetCurrentClocksEventReasons",),
            ("nvmlDeviceGetCurrentClocksThrottleReasons",),
        )
        self.fill(("health.event_reasons",), reasons, number)
        temperature = self.first(("nvmlDeviceGetTemperature", 0), ("nvmlDeviceGetTemperatureV", 0))
        self.fill(("health.temperature_c",), temperature, number)
        self._sram_threshold()
        self.ask(HEALTH)

    def _sram_threshold(self) -> None:
        path = "health.sram_threshold_exceeded"
        status = self._nvml.struct("c_nvmlEccSramErrorStatus_v1_t")
        if status is None:
            self.miss(path, self._nvml.unread(FUNCTION_NOT_FOUND))
            return
        answer = self.call("nvmlDeviceGetSramEccErrorStatus", ctypes.byref(status))
        self.fill((path,), answer, lambda _: [bool(status.bThresholdExceeded)])

    def pcie(self) -> None:
        """Read the PCIe link and its errors."""
        self.ask(PCIE)
        wanted = {"pcie.replay_rollover_counter": (FIELD_REPLAY_ROLLOVER, 0)}
        for i, name in enumerate(PCIE_ERRORS):
            wanted["pcie.errors." + name] = (FIELD_PCIE_ERRORS + i, 0)
        for path, answer in self.fields(wanted).items():
            self.fill((path,), answer, number)

    def license(self) -> None:
        """Read whether a virtual GPU holds its license; other GPUs need none."""
        if self.value.get("virtualization") == "VGPU":
            answer = self.call("nvmlDeviceGetGridLicensableFeatures")
            self.fill(("licensed",), answer, licensed)

    def fabric(self) -> None:
        """Read whether the GPU has joined the NVLink fabric (NVSwitch boards, Hopper and later)."""
        names = ("fabric.state", "fabric.status", "fabric.clique")
        answer = Answer(None, self._nvml.unread(FUNCTION_NOT_FOUND))
        for function, name in (
            ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v3_t"),
            ("nvmlDeviceGetGpuFabricInfoV", "c_nvmlGpuFabricInfo_v2_t"),
            ("nvmlDeviceGetGpuFabricInfo", "c_nvmlGpuFabricInfo_t"),
        ):
            info = self._nvml.struct(name)
            if info is None:
                continue
            # pynvml passes this on as it is, and ctypes would pass a struct by value.
            answer = self.call(function, ctypes.byref(info))
            if answer.unread is None:
                # In C the state is one byte, in pynvml four.
                fixed = (info.state & 0xFF, info.status, info.cliqueId)
                self.fill(names, Answer(fixed, None), numbers)
                self.put("fabric.cluster", bytes(bytearray(info.clusterUuid)).hex())
                self.put("fabric.health_mask", _optional(info, "healthMask"))
                self.put("fabric.health_summary", _optional(info, "healthSummary"))
                return
            if answer.unread.code not in (FUNCTION_NOT_FOUND, INVALID_ARGUMENT, VERSION_MISMATCH):
                break
        for path in (*names, "fabric.cluster", "fabric.health_mask", "fabric.health_summary"):
            self.miss(path, answer.unread)

    def affinity(self) -> None:
        """Read which CPUs and which memory are near."""
        answer = self.call("nvmlDeviceGetCpuAffinity", CPU_WORDS)
        self.fill(("cpu_affinity",), answer, lambda words: [bits(words)])
        answer = self.call("nvmlDeviceGetMemoryAffinity", NODE_WORDS, 0)
        if answer.unread is None and not bits(answer.value):
            answer = Answer(None, self._nvml.unread(NO_DATA))
        self.fill(("numa_node",), answer, lambda words: bits(words)[:1])
        # nvmlDeviceGetNumaNodeId is about GPUs that are NUMA nodes themselves (Grace Hopper).
        answer = self.call("nvmlDeviceGetNumaNodeId")
        self.fill(("gpu_numa_node",), answer, number)

    def links(self) -> None:
        """Read every NVLink."""
        counted = self.fields({"links": (FIELD_LINK_COUNT, 0)})["links"]
        count = None if counted.unread is not None else int(counted.value)
        states: list[Answer] = []
        for link in range(MAX_LINKS if count is None else min(count, MAX_LINKS)):
            answer = self.call("nvmlDeviceGetNvLinkState", link)
            if count is None and answer.unread is not None:
                # NVML does not say how many there are: the first refusal is the end of the list.
                if link == 0:
                    states.append(answer)
                break
            states.append(answer)
        reasons = {answer.unread for answer in states}
        if states and None not in reasons and len(reasons) == 1:
            self.miss("links", states[0].unread)
            return
        links: list[dict[str, object]] = []
        self.put("links", links)
        for index, answer in enumerate(states):
            links.append({"link": index})
            self._link(links[-1], answer)
        self._speeds([link for link in links if link["state"] == 1])

    def _link(self, link: dict[str, object], state: Answer) -> None:
        def keep(key: str, answer: Answer, convert: Convert) -> None:
            if answer.unread is None:
                link[key] = convert(answer.value)[0]
            else:
                link[key] = None
                self._unread[f"links.{link['link']}.{key}"] = answer.unread.record()

        index = link["link"]
        keep("state", state, number)
        if link["state"] != 1:
            return
        keep("remote_bdf", self.call("nvmlDeviceGetNvLinkRemotePciInfo", index), pci)
        remote = self.call("nvmlDeviceGetNvLinkRemoteDeviceType", index)
        keep("remote_type", remote, named(REMOTE_TYPES))
        keep("version", self.call("nvmlDeviceGetNvLinkVersion", index), number)
        if self._deep:
            for counter, name in enumerate(LINK_ERRORS):
                answer = self.call("nvmlDeviceGetNvLinkErrorCounter", index, counter)
                keep("errors_" + name, answer, number)

    def _speeds(self, links: list[dict[str, Any]]) -> None:
        """Read the raw speed of the active links, by the new field or by the old ones."""
        if not links:
            return
        wanted = {str(link["link"]): (FIELD_LINK_SPEED, link["link"]) for link in links}
        speeds = self.fields(wanted)
        old = {
            key: (FIELDS_LINK_SPEED_OLD[int(key)], 0)
            for key, answer in speeds.items()
            if answer.unread is not None and int(key) < len(FIELDS_LINK_SPEED_OLD)
        }
        if old:
            speeds.update(self.fields(old))
        for link in links:
            answer = speeds[str(link["link"])]
            link["speed_mbps"] = None if answer.unread is not None else int(answer.value)
            if answer.unread is not None:
                path = f"links.{link['link']}.speed_mbps"
                self._unread[path] = answer.unread.record()

    def mig_devices(self) -> None:
        """Read the slices that the GPU is cut into."""
        devices: list[object] = []
        self.put("mig_devices", devices)
        if not self.value.get("mig_mode"):
            return
        most = self.call("nvmlDeviceGetMaxMigDeviceCount")
        if most.unread is not None:
            self.miss("mig_devices", most.unread)
            return
        for index in range(int(most.value)):
            handle = self.call("nvmlDeviceGetMigDeviceHandleByIndex", index)
            if handle.unread is None:
                devices.append(self._mig_device(index, handle.value))
            elif handle.unread.code != NOT_FOUND:
                self._unread[f"mig_devices.{index}"] = handle.unread.record()

    def _mig_device(self, index: int, handle: Any) -> dict[str, object]:
        device: dict[str, Any] = {"index": index}

        def keep(keys: tuple[str, ...], convert: Convert, function: str, *args: Any) -> None:
            answer = self.call_on(handle, function, *args)
            values: Sequence[object] = [None] * len(keys)
            if answer.unread is None:
                values = convert(answer.value)
            for key, value in zip(keys, values):
                device[key] = value
                if answer.unread is not None:
                    self._unread[f"mig_devices.{index}.{key}"] = answer.unread.record()

        keep(("uuid",), text, "nvmlDeviceGetUUID")
        keep(("name",), text, "nvmlDeviceGetName")
        keep(("gpu_instance_id",), number, "nvmlDeviceGetGpuInstanceId")
        keep(("compute_instance_id",), number, "nvmlDeviceGetComputeInstanceId")
        keep(
            ("memory_total_bytes", "memory_used_bytes"),
            lambda m: numbers((m.total, m.used)),
            "nvmlDeviceGetMemoryInfo",
        )
        keep(
            ("gpu_slices", "compute_slices", "multiprocessors", "memory_mib"),
            lambda a: numbers(
                (
                    a.gpuInstanceSliceCount,
                    a.computeInstanceSliceCount,
                    a.multiprocessorCount,
                    a.memorySizeMB,
                )
            ),
            "nvmlDeviceGetAttributes",
        )
        device["profile"] = _profile(device)
        return device


def _profile(device: dict[str, Any]) -> str | None:
    """Return the profile ("3g.40gb"): from the name, where older drivers do not put it computed."""
    after = (device["name"] or "").rpartition(" MIG ")
    if after[1]:
        return str(after[2])
    if not device["gpu_slices"] or not device["memory_mib"]:
        return None
    profile = f"{device['gpu_slices']}g.{-(-device['memory_mib'] // 1024)}gb"
    if device["compute_slices"] != device["gpu_slices"]:
        profile = f"{device['compute_slices']}c.{profile}"
    return profile


def _process(kind: str, process: Any) -> dict[str, object]:
    used = process.usedGpuMemory
    instance = getattr(process, "gpuInstanceId", None)
    return {
        "pid": int(process.pid),
        "kind": kind,
        # Not available on WSL and in containers that hide other processes.
        "used_bytes": None if used is None else int(used),
        "gpu_instance_id": None if instance in (None, NO_INSTANCE) else int(instance),
    }


def _optional(info: Any, key: str) -> int | None:
    value = getattr(info, key, None)
    return None if value is None else int(value)


# ---- pairs of GPUs -----------------------------------------------------------------------------


def read_pair(nvml: Nvml, first: Gpu, second: Gpu) -> dict[str, object]:
    """Read how two GPUs reach each other."""
    unread: dict[str, object] = {}
    a, b = first.value["index"], second.value["index"]
    pair: dict[str, object] = {"a": a, "b": b, "unread": unread}

    def keep(key: str, names: dict[int, str], function: str, *args: Any) -> None:
        lost = first.value["error"] or second.value["error"]
        if first.handle is None or second.handle is None:
            answer = Answer(None, Unread(lost["code"], lost["name"]))
        else:
            answer = nvml.call(f"gpu {a}: ", function, first.handle, second.handle, *args)
        pair[key] = None if answer.unread is not None else named(names)(answer.value)[0]
        if answer.unread is not None:
            unread[key] = answer.unread.record()

    keep("ancestor", ANCESTORS, "nvmlDeviceGetTopologyCommonAncestor")
    for key, capability in P2P_CAPABILITIES:
        keep(key, P2P, "nvmlDeviceGetP2PStatus", capability)
    return pair


# ---- the whole ---------------------------------------------------------------------------------


def read_driver(nvml: Nvml) -> dict[str, object]:
    """Read the versions."""
    value: dict[str, object] = {}
    unread: dict[str, object] = {}
    questions: tuple[tuple[str, tuple[str, ...], Convert], ...] = (
        ("driver_version", ("nvmlSystemGetDriverVersion",), text),
        ("nvml_version", ("nvmlSystemGetNVMLVersion",), text),
        (
            "cuda_version",
            ("nvmlSystemGetCudaDriverVersion_v2", "nvmlSystemGetCudaDriverVersion"),
            number,
        ),
    )
    for key, functions, convert in questions:
        answer = Answer(None, None)
        for function in functions:
            answer = nvml.call("", function)
            if answer.unread is None:
                break
        value[key] = None if answer.unread is not None else convert(answer.value)[0]
        if answer.unread is not None:
            unread[key] = answer.unread.record()
    value["unread"] = unread
    return value


def find_library(name: str) -> str | None:
    """Do what the function of that name in `ctypes.util` does, which is imported here."""
    sys.modules.pop("ctypes.util", None)
    util: Any = importlib.import_module("ctypes.util")
    found: str | None = util.find_library(name)
    return found


def spare_ctypes_util() -> None:
    """Let pynvml import `find_library`, which it does not call on Linux, from a stub.

    The real one imports subprocess, shutil and tempfile: a quarter of this script's run time.
    """
    if "ctypes.util" not in sys.modules:
        util: Any = types.ModuleType("ctypes.util")
        util.find_library = find_library
        sys.modules["ctypes.util"] = util


def load_pynvml() -> Nvml | None:
    """Import pynvml, or report why that fails."""
    call = "import pynvml"
    emit({"step": call})
    spare_ctypes_util()
    try:
        pynvml = importlib.import_module("pynvml")
        if not hasattr(pynvml, "NVMLError"):
            message = f"{getattr(pynvml, '__file__', None)} is another module of that name"
            raise ImportError(message)  # noqa: TRY301 - one place that reports
    except Exception as error:  # absent, shadowed, broken
        message = f"{type(error).__name__}: {error}"
        value = {"code": None, "name": "PYNVML_IMPORT", "message": message, "call": call}
        emit({"fact": "nvml_error", "value": value})
        return None
    return Nvml(pynvml)


def examine(*, deep: bool) -> None:
    """Read everything and emit it piece by piece."""
    nvml = load_pynvml()
    if nvml is None:
        return
    started = nvml.call("", "nvmlInit")
    if started.unread is not None:
        emit({"fact": "nvml_error", "value": nvml.error(started.unread, "nvmlInit")})
        return
    emit({"fact": "driver", "value": read_driver(nvml)})
    counted = nvml.call("", "nvmlDeviceGetCount")
    if counted.unread is not None:
        emit({"fact": "nvml_error", "value": nvml.error(counted.unread, "nvmlDeviceGetCount")})
        return
    count = int(counted.value)
    emit({"fact": "gpu_count", "value": count})

    gpus: list[Gpu] = []
    for index in range(count):
        gpu = Gpu(nvml, index, deep=deep)
        gpus.append(gpu)
        if gpu.open():
            gpu.read()
        emit({"fact": "gpu", "value": gpu.value})

    pairs = [read_pair(nvml, a, b) for i, a in enumerate(gpus) for b in gpus[i + 1 :]]
    emit({"fact": "topology", "value": {"pairs": pairs}})


def main(arguments: Sequence[str]) -> int:
    """Run the script."""
    try:
        examine(deep="--deep-ok" in arguments)
        emit({"done": True})
    except OSError:
        # Nobody reads the output any more.
        return 1
    # No nvmlShutdown: it may hang like any call, and the end of the process has the same effect.
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
