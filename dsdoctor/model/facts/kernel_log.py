"""Facts from the kernel log about GPUs: Xids, SXids of NVSwitches, PCIe errors."""

from __future__ import annotations

import msgspec

from dsdoctor.model.facts.base import Fact


class XidEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One error that the NVIDIA driver wrote to the kernel log.

    Attributes:
        code: number of the Xid, or of the SXid if `switch` is set.
        bdf: PCI address without the function (`0000:1b:00`).
        text: the text after the number, secrets masked.
        age_s: seconds since it was written; None if the log has no timestamps.
        switch: it was raised by an NVSwitch, not by a GPU.
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
        count: number of lines.
        age_s: seconds since the last one; None if the log has no timestamps.
    """

    bdf: str
    severity: str
    count: int
    age_s: float | None = None


class KernelLog(Fact, frozen=True, kw_only=True):
    """The lines of the kernel log, since the last boot, about GPUs and the PCIe bus.

    Attributes:
        source: `dmesg` or `journalctl`.
        xids: errors of the NVIDIA driver, oldest first.
        bus: PCIe errors, by device and severity.
        hmm_failed: nvidia_uvm found no addresses for the memory of a GPU (HMM), without which CUDA
            does not start.
        fallen: PCI addresses, with the function, of GPUs that did not answer when the driver took
            them; it writes no Xid for them.
        not_started: the same of GPUs that the driver took and could not initialize.
        begins_s: age of the oldest line, in seconds; None if lines have no timestamps.
    """

    source: str
    xids: tuple[XidEvent, ...] = ()
    bus: tuple[BusEvents, ...] = ()
    hmm_failed: bool = False
    fallen: tuple[str, ...] = ()
    not_started: tuple[str, ...] = ()
    begins_s: float | None = None


class FallenGpus(Fact, frozen=True, kw_only=True):
    """GPUs that the kernel log says the driver could not take or initialize.

    Apart from the log, so that a gate, which does not judge by the log, judges the rest of a check.

    Attributes:
        bdfs: PCI addresses, with the function, of those that did not answer when the driver took
            them.
        not_started: the same of those that it took and could not initialize, since the last boot.
    """

    bdfs: tuple[str, ...] = ()
    not_started: tuple[str, ...] = ()
