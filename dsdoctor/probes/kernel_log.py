"""Reads Xids and PCIe errors from the kernel log, if this user may read it.

NVML reports only Xids that occur while a program listens; earlier ones are only in the log.
"""

from __future__ import annotations

import re

from dsdoctor.api import FallenGpus, KernelLog, Missing, NvidiaKernel, probe
from dsdoctor.host import TOOL_SECONDS, Host, HostError, read_text
from dsdoctor.model.facts.base import Why
from dsdoctor.model.facts.kernel_log import BusEvents, XidEvent
from dsdoctor.model.redact import mask

#: Number of newest events that are kept; a failing GPU repeats them thousands of times.
KEPT = 200
TEXT = 200

_STAMP = re.compile(r"^(?:<\d+>)?\[\s*(\d+\.\d+)\]\s?(.*)$")
_XID = re.compile(
    r"(SXid|Xid) \(PCI:([0-9a-fA-F]{4,8}):([0-9a-fA-F]{2}):([0-9a-fA-F]{2})(?:\.\w+)?\): (\d+)(.*)"
)
_AER = re.compile(
    r"([0-9a-f]{4,8}):([0-9a-f]{2}):([0-9a-f]{2})\.\w: (?:AER: )?PCIe Bus Error:.*severity=([^,]+)",
    re.IGNORECASE,
)
#: nvidia-uvm uvm_pmm_gpu.c, drivers 535 to 590; without such a line HMM works or is off.
_HMM = "request_free_mem_region() err"
#: The first and the last of three lines (open-gpu-kernel-modules 515 to 590,
#: unix/src/osinit.c), which printk may keep in one record.
_REFUSED = re.compile(
    r"NVRM: The NVIDIA GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])"
)
#: Written whenever a program opens the GPU (the same file; older drivers leave out the address).
_NOT_STARTED = re.compile(
    r"NVRM: GPU ([0-9a-fA-F]{4,8}:[0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7]): RmInitAdapter failed"
)
_FALLEN = "fallen off the bus and is not responding to commands"
_SEVERITY = {"corrected": "corrected", "fatal": "fatal"}


def address(domain: str, bus: str, device: str) -> str:
    """PCI address without the function, as Linux writes it.

    >>> address("00000000", "1B", "00")
    '0000:1b:00'
    """
    return f"{int(domain, 16):04x}:{bus.lower()}:{device.lower()}"


def parse_log(text: str, uptime: float | None, source: str) -> KernelLog:
    """Parses lines of `[seconds since boot] text`.

    Args:
        text: the log, oldest first.
        uptime: seconds since boot; None = ages are unknown.
        source: which tool printed it.

    >>> line = "<3>[  100.5] NVRM: Xid (PCI:0000:1b:00): 79, pid=7, GPU has fallen off the bus."
    >>> parse_log(line, 160.5, "dmesg").xids[0]
    XidEvent(code=79, bdf='0000:1b:00', text='pid=7, GPU has fallen off the bus.', age_s=60.0, switch=False)
    """  # noqa: E501  # the repr of a fact is one line
    xids: list[XidEvent] = []
    bus: dict[tuple[str, str], tuple[int, float | None]] = {}
    begins: float | None = None
    hmm_failed = False
    fallen: dict[str, None] = {}
    not_started: dict[str, None] = {}
    refused = ""
    for raw in text.splitlines():
        stamp = _STAMP.match(raw)
        age = None
        if stamp is not None and uptime is not None:
            age = max(0.0, round(uptime - float(stamp[1]), 1))
            begins = age if begins is None else begins
        if "Xid (" in raw and (found := _XID.search(raw)):
            xids.append(
                XidEvent(
                    code=int(found[5]),
                    bdf=address(found[2], found[3], found[4]),
                    text=mask(found[6].lstrip(", "))[:TEXT],
                    age_s=age,
                    switch=found[1] == "SXid",
                )
            )
        elif "PCIe Bus Error" in raw and (found := _AER.search(raw)):
            word = found[4].strip().lower()
            key = (
                address(found[1], found[2], found[3]),
                _SEVERITY.get(_severity(word), "nonfatal"),
            )
            bus[key] = (bus.get(key, (0, None))[0] + 1, age)
        elif _HMM in raw:
            hmm_failed = True
        elif "NVRM: The NVIDIA GPU" in raw and (found := _REFUSED.search(raw)):
            refused = found[1].lower()
        elif _FALLEN in raw and refused:
            fallen[refused] = None
        elif "RmInitAdapter failed" in raw and (found := _NOT_STARTED.search(raw)):
            not_started[found[1].lower()] = None
    return KernelLog(
        source=source,
        xids=tuple(xids[-KEPT:]),
        bus=tuple(
            BusEvents(bdf=bdf, severity=severity, count=count, age_s=age)
            for (bdf, severity), (count, age) in sorted(bus.items())
        ),
        hmm_failed=hmm_failed,
        fallen=tuple(fallen),
        not_started=tuple(not_started),
        begins_s=begins,
    )


def _severity(word: str) -> str:
    """The severity of `Uncorrected (Fatal)` and of `Corrected`."""
    inner = re.search(r"\(([\w-]+)\)", word)
    return inner[1] if inner else word


def _uptime(host: Host) -> float | None:
    try:
        return float(read_text(host, "/proc/uptime").split()[0])
    except (HostError, ValueError, IndexError):
        return None


#: What prints the log since boot, each line with its seconds since then.
TOOLS = (
    ("dmesg", ("-r",)),
    ("journalctl", ("-k", "-b", "-q", "--no-pager", "-o", "short-monotonic")),
)


@probe
def kernel_log(host: Host, kernel: NvidiaKernel | Missing) -> KernelLog:
    """The log from `dmesg`, or from `journalctl` if this user may not read the ring buffer."""
    if host.system != "Linux":
        raise HostError(Why.UNSUPPORTED, f"the kernel's log is not read on {host.system}")
    if isinstance(kernel, NvidiaKernel) and not (kernel.pci or kernel.device_nodes):
        raise HostError(Why.ABSENT, "there is no NVIDIA GPU that the kernel's log could mention")
    reasons: list[str] = []
    why = Why.ABSENT
    for name, options in TOOLS:
        path = host.which(name)
        if path is None:
            reasons.append(f"there is no `{name}`")
            continue
        result = host.run([path, *options], timeout=TOOL_SECONDS)
        if result.ok and (result.text.strip() or name == "dmesg"):
            return parse_log(result.text, _uptime(host), name)
        if result.timed_out:
            why = Why.TIMEOUT
            reasons.append(f"`{name}` did not end within {TOOL_SECONDS:g} s")
        else:
            why = Why.DENIED if why is Why.ABSENT else why
            reasons.append(f"`{name}` does not show it to this user")
    raise HostError(
        why,
        f"the kernel's log was not read, so past Xids are not known: {_in_words(reasons)}",
    )


def _in_words(reasons: list[str]) -> str:
    return " and ".join(reasons)


@probe
def fallen_gpus(log: KernelLog) -> FallenGpus:
    """Takes them from the log."""
    return FallenGpus(bdfs=log.fallen, not_started=log.not_started)
