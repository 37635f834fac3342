"""What `nvidia-smi -q` prints of a GPU: its sections and keys, and what they state."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from dsdoctor.model.facts.gpu import EventReason, FabricHealth, FabricState, RecoveryAction
from dsdoctor.paste import nvidia_smi_values as values


def _text(value: str) -> str | None:
    return value if value and value != "N/A" else None


def _width(value: str) -> int | None:
    found = re.fullmatch(r"(\d{1,2})x", value)
    return int(found[1]) if found else None


#: `Status` in the section `Fabric`, since driver 525: NVML's texts and codes (nvmlGpuFabricInfo_t).
_STATUS = {"Success": 0, "Insufficient Resources": 23, "Not Ready": 27, "Unknown Error": 999}


def _fabric_state(value: str) -> int | None:
    names = {"Not Started": FabricState.NOT_STARTED, "In Progress": FabricState.IN_PROGRESS}
    return names.get(value) or (FabricState.COMPLETED if value == "Completed" else None)


def _fabric_status(value: str) -> int | None:
    return _STATUS.get(value)


def _cluster(value: str) -> str | None:
    found = re.fullmatch(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}", value.lower())
    return found[0].replace("-", "") if found else None


def _virtualization(value: str) -> str | None:
    names = {
        "None": "NONE",
        "Pass-Through": "PASSTHROUGH",
        "VGPU": "VGPU",
        "Host VGPU": "HOST_VGPU",
    }
    return names.get(value)


def _licensed(value: str) -> bool | None:
    # further words follow in parentheses: the expiry, or whether the GPU is slowed down already
    found = re.match(r"(?:Unl|L)icensed\b", value)
    return found[0] == "Licensed" if found else None


def _reset(value: str) -> int | None:
    return int(RecoveryAction.GPU_RESET) if value == "Yes" else None


def _drain(value: str) -> int | None:
    return int(RecoveryAction.DRAIN_AND_RESET) if value == "Yes" else None


def _fabric_health(value: str) -> int | None:
    names = {"Healthy": FabricHealth.HEALTHY, "Unhealthy": FabricHealth.UNHEALTHY}
    return names.get(value) or (
        FabricHealth.LIMITED_CAPACITY if value == "Limited Capacity" else None
    )


#: The section `Clocks Event Reasons` (`Clocks Throttle Reasons` before driver 530); nvml.h.
REASONS = {
    "Idle": EventReason.IDLE,
    "Applications Clocks Setting": EventReason.APPLICATION_CLOCKS,
    "SW Power Cap": EventReason.SW_POWER_CAP,
    "HW Slowdown": EventReason.HW_SLOWDOWN,
    "HW Thermal Slowdown": EventReason.HW_THERMAL,
    "HW Power Brake Slowdown": EventReason.HW_POWER_BRAKE,
    "Sync Boost": EventReason.SYNC_BOOST,
    "SW Thermal Slowdown": EventReason.SW_THERMAL,
    "Display Clock Setting": EventReason.DISPLAY_CLOCKS,
}
REASON = re.compile(r"Clocks (?:Event|Throttle) Reasons/(?P<name>[A-Z][\w ]{2,40})$")
#: Keys that prove the section complete: one that is cut off may lack one of them.
DECISIVE = frozenset({"Idle", "HW Slowdown"})

#: Section path (names of the sections above, joined) to the field and how its value is parsed.
#: Sections as in drivers 384 to 610; values that have moved are listed twice.
FIELDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "GPU UUID": ("uuid", _text),
    "Persistence Mode": ("persistence_mode", values.switch),
    "Compute Mode": ("compute_mode", values.mode),
    "MIG Mode/Current": ("mig_mode", values.switch),
    "MIG Mode/Pending": ("mig_mode_pending", values.switch),
    "ECC Mode/Current": ("ecc_mode", values.switch),
    "Ecc Mode/Current": ("ecc_mode", values.switch),
    "ECC Mode/Pending": ("ecc_mode_pending", values.switch),
    "Ecc Mode/Pending": ("ecc_mode_pending", values.switch),
    "FB Memory Usage/Total": ("memory_total_bytes", values.mib),
    "Remapped Rows/Correctable Error": ("health.remapped_rows_corrected", values.number),
    "Remapped Rows/Uncorrectable Error": ("health.remapped_rows_uncorrected", values.number),
    "Remapped Rows/Pending": ("health.remapped_rows_pending", values.switch),
    "Remapped Rows/Remapping Failure Occurred": ("health.remapped_rows_failure", values.switch),
    "Retired Pages/Single Bit ECC": ("health.retired_pages_single_bit", values.number),
    "Retired Pages/Double Bit ECC": ("health.retired_pages_double_bit", values.number),
    "Retired Pages/Pending Page Blacklist": ("health.retired_pages_pending", values.switch),
    "Retired Pages/Pending": ("health.retired_pages_pending", values.switch),
    "GPU Link Info/Link Width/Max": ("pcie.max_width", _width),
    "PCI/GPU Link Info/Link Width/Max": ("pcie.max_width", _width),
    "PCI/GPU Link Info/Link Width/Current": ("pcie.width", _width),
    "Power Readings/Power Limit": ("health.power_limit_mw", values.milliwatts),
    "Power Readings/Default Power Limit": ("health.power_limit_default_mw", values.milliwatts),
    "GPU Power Readings/Current Power Limit": ("health.power_limit_mw", values.milliwatts),
    "GPU Power Readings/Requested Power Limit": ("health.power_limit_set_mw", values.milliwatts),
    "GPU Power Readings/Default Power Limit": ("health.power_limit_default_mw", values.milliwatts),
    "GPU Recovery Action": ("health.recovery_action", values.recovery),
    # from driver 530 until the action above replaced it
    "GPU Reset Status/Reset Required": ("health.recovery_action", _reset),
    "GPU Reset Status/Drain and Reset Recommended": ("health.recovery_action", _drain),
    "ECC Errors/Channel Repair Pending": ("health.channel_repair_pending", values.switch),
    "ECC Errors/TPC Repair Pending": ("health.tpc_repair_pending", values.switch),
    "ECC Errors/Aggregate/DRAM Correctable": ("health.dram_aggregate_corrected", values.number),
    "ECC Errors/Aggregate/SRAM Correctable": ("health.sram_aggregate_corrected", values.number),
    "ECC Errors/Aggregate/SRAM Threshold Exceeded": (
        "health.sram_threshold_exceeded",
        values.switch,
    ),
    "GSP Firmware Version": ("gsp_version", _text),
    "VBIOS Version": ("vbios", _text),
    "Minor Number": ("minor_number", values.number),
    "GPU Virtualization Mode/Virtualization Mode": ("virtualization", _virtualization),
    "vGPU Software Licensed Product/License Status": ("licensed", _licensed),
    "GRID Licensed Product/License Status": ("licensed", _licensed),
    "Fabric/State": ("fabric.state", _fabric_state),
    "Fabric/Status": ("fabric.status", _fabric_status),
    "Fabric/CliqueId": ("fabric.clique", values.number),
    "Fabric/ClusterUUID": ("fabric.cluster", _cluster),
    "Fabric/Health/Summary": ("fabric.health_summary", _fabric_health),
}


#: Counters of errors since the driver was loaded: since Ampere by memory (uncorrected ones of SRAM
#: also by kind, since driver 530), before it the total.
VOLATILE = re.compile(
    r"E(?:CC|cc) Errors/Volatile/(?:[SD]RAM Correctable|Single Bit/Total"
    r"|(?P<bad>[SD]RAM Uncorrectable(?: Parity| SEC-DED)?|Double Bit/Total))$"
)


def states(path: str, value: str) -> bool:
    """Whether the report of a GPU has this path, and could have the value there."""
    value = value.strip()
    unknown = value in ("N/A", "[N/A]", "Unknown Error")
    if path == "Product Name":
        return bool(value)
    if VOLATILE.search(path):
        return unknown or values.number(value) is not None
    if (reason := REASON.match(path)) and reason["name"] in REASONS:
        return unknown or value in ("Active", "Not Active")
    if path not in FIELDS:
        return False
    # a switch that is off may say nothing of what is read from it
    return unknown or value in ("Yes", "No") or FIELDS[path][1](value) is not None
