"""What the kernel's log tells of GPUs: Xids, SXids of NVSwitches, PCIe errors."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class XidEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One error that the NVIDIA driver wrote to the kernel's log.

    Attributes:
        code: number of the Xid, or of the SXid where `switch` is set.
        bdf: PCI address without the function (`0000:1b:00`).
        text: what follows the number, secrets masked.
        age_s: seconds since it was written; None where the log has no times.
        switch: it is of an NVSwitch, not of a GPU.
    """

    code: int
    bdf: str
    text: str = ""
    age_s: float | None = None
    switch: bool = False


class BusEvents(msgspec.Struct, frozen=True, kw_only=True):
    """PCIe errors of one device and severity (Advanced Error Reporting).

    Attributes:
        bdf: PCI address without the function.
        severity: `corrected`, `nonfatal` or `fatal`.
        count: lines.
        age_s: seconds since the last of them; None where the log has no times.
    """

    bdf: str
    severity: str
    count: int
    age_s: float | None = None


class KernelLog(Fact, frozen=True, kw_only=True):
    """The part of the kernel's log, since the last boot, that is about GPUs and their bus.

    Attributes:
        source: `dmesg` or `journalctl`.
        xids: errors of the NVIDIA driver, oldest first.
        bus: PCIe errors, by device and severity.
        begins_s: seconds ago that the oldest line was written; None where lines have no times.
    """

    source: str
    xids: tuple[XidEvent, ...] = ()
    bus: tuple[BusEvents, ...] = ()
    begins_s: float | None = None
