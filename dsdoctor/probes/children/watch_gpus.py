r"""Sample GPUs through NVML, one JSON line each time, in a process that may hang.

    python watch_gpus.py SECONDS [SELECTOR [pci]]

SELECTOR: `all`; `only:` with what CUDA_VISIBLE_DEVICES takes; `not:` with numbers; `job:` with
numbers of the host, which count where more GPUs than these are seen (a control group hides the
others and renumbers). `pci`: CUDA numbers GPUs by PCI address, as NVML does; without it, numbers
are certain only where all GPUs are of one model.

Prints {"t": epoch, "gpus": [{"index", "uuid", "name", "used", "total", "util", "power_w",
"temp_c", "throttle": [names], "ecc": uncorrected errors since the driver was loaded, "bdf",
"lost": the driver no longer reaches it}], "xids": [{"gpu", "bdf", "code"}] since the last line,
"others": PCI addresses of GPUs that are not chosen, "unsure": numbers may be those of other GPUs,
so all are sampled}. A value that the driver does not report is null; of MIG devices, memory is
theirs and the rest is their GPU's. An Xid is printed at once. Ends when its output is closed.
Standard library and pynvml, Python 3.8 and later.
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Callable

#: Clock event reasons that slow a job down (nvml.h of CUDA 13.0); idle and settings are left out.
REASONS = {
    0x8: "hw-slowdown",
    0x20: "sw-thermal",
    0x40: "hw-thermal",
    0x80: "power-brake",
    0x4: "power-cap",
}
#: nvmlEventTypeXidCriticalError of nvml.h.
XID_EVENT = 0x8


def ask(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception:
        return None


def is_lost(nvml: Any, handle: Any) -> bool:
    try:
        nvml.nvmlDeviceGetMemoryInfo(handle)
    except Exception as error:
        return bool(getattr(error, "value", None) == nvml.NVML_ERROR_GPU_IS_LOST)
    return False


def address(nvml: Any, handle: Any) -> str:
    """`0000:3b:00`, as in the kernel's log; "" if not known."""
    pci = ask(nvml.nvmlDeviceGetPciInfo, handle)
    if pci is None:
        return ""
    text = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
    return text.lower().rpartition(".")[0][-10:]


class Events:
    """Xids, as the driver reports them to waiting programs; does not need the kernel's log."""

    def __init__(self, nvml: Any, handles: list[tuple[int, Any]]) -> None:
        self.nvml = nvml
        self.set = ask(nvml.nvmlEventSetCreate)
        for _, handle in handles:
            if self.set is not None and handle is not None:
                ask(nvml.nvmlDeviceRegisterEvents, handle, XID_EVENT, self.set)

    def wait(self, seconds: float) -> list[dict[str, Any]]:
        """Sleeps for so long, or until the first event."""
        until = time.monotonic() + seconds
        if self.set is not None:
            try:
                data = self.nvml.nvmlEventSetWait_v2(self.set, int(seconds * 1000))
                index = ask(self.nvml.nvmlDeviceGetIndex, data.device)
                bdf = address(self.nvml, data.device)
                return [{"gpu": index, "bdf": bdf, "code": int(data.eventData)}]
            except Exception:
                pass  # no event, or the driver does not support events
        time.sleep(max(0.0, until - time.monotonic()))
        return []


def text_of(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value or "")


def is_index(word: str) -> bool:
    return word[:9] == word and word.isdecimal()  # the job may have set 5,000 digits


class UnsureError(Exception):
    """GPU numbers do not identify the GPUs."""


class Selection:
    """The GPUs of the host by number, and those that a selector chooses.

    `chosen` contains index, handle, and the chosen MIG devices of the GPU (none = the whole GPU).
    """

    def __init__(self, nvml: Any, selector: str, by_pci: bool) -> None:
        self.nvml = nvml
        count = nvml.nvmlDeviceGetCount()
        self.handles = [ask(nvml.nvmlDeviceGetHandleByIndex, index) for index in range(count)]
        self.unsure = False
        try:
            self.chosen = self.choose(selector, by_pci)
        except UnsureError:
            self.unsure = True
            self.chosen = dict.fromkeys(range(count), ())
        self.others = [
            place
            for index, handle in enumerate(self.handles)
            if index not in self.chosen and handle is not None
            for place in [address(nvml, handle)]
            if place
        ]

    def choose(self, selector: str, by_pci: bool) -> dict[int, tuple[Any, ...]]:
        kind, _, text = selector.partition(":")
        words = [word.strip() for word in text.split(",") if word.strip()]
        everything: dict[int, tuple[Any, ...]] = dict.fromkeys(range(len(self.handles)), ())
        if kind == "all" or (kind == "job" and len(self.handles) <= len(words)):
            return everything
        if any(is_index(word) for word in words) and kind != "job" and not by_pci:
            names = {ask(self.nvml.nvmlDeviceGetName, handle) for handle in self.handles}
            if len(names) > 1:
                raise UnsureError
        if kind == "not":
            left = {int(word) for word in words if is_index(word)}
            return {index: () for index in everything if index not in left}
        found: dict[int, tuple[Any, ...]] = {}
        for word in words:
            one = self.named(word)
            if one is None:
                break  # CUDA reads no further either
            index, slices = one
            found[index] = found.get(index, ()) + slices
        return found

    def named(self, word: str) -> tuple[int, tuple[Any, ...]] | None:
        """The GPU or MIG device of a number, a UUID or the beginning of one."""
        if is_index(word):
            return (int(word), ()) if int(word) < len(self.handles) else None
        lowered = word.lower()
        if lowered.startswith("mig-gpu-"):  # drivers before 470: MIG-GPU-UUID/GI/CI
            lowered = lowered[4:].partition("/")[0]
        if not lowered.startswith(("gpu-", "mig-")):
            return None
        for index, handle in enumerate(self.handles):
            if handle is None:
                continue
            if text_of(ask(self.nvml.nvmlDeviceGetUUID, handle)).lower().startswith(lowered):
                return index, ()
            for device in self.slices(handle):
                if text_of(ask(self.nvml.nvmlDeviceGetUUID, device)).lower().startswith(lowered):
                    return index, (device,)
        return None

    def slices(self, handle: Any) -> list[Any]:
        count = ask(self.nvml.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
        found = [
            ask(self.nvml.nvmlDeviceGetMigDeviceHandleByIndex, handle, place)
            for place in range(count)
        ]
        return [device for device in found if device is not None]


class Memory:
    """Bytes in use, and total bytes."""

    def __init__(self, used: int, total: int) -> None:
        self.used, self.total = used, total


def memory_of(nvml: Any, handle: Any, slices: tuple[Any, ...]) -> Memory | None:
    """The memory of all MIG devices together if there are any, else of the GPU."""
    found = [ask(nvml.nvmlDeviceGetMemoryInfo, device) for device in slices or (handle,)]
    known = [memory for memory in found if memory is not None]
    if not known:
        return None
    return Memory(sum(int(m.used) for m in known), sum(int(m.total) for m in known))


def read(nvml: Any, handle: Any, index: int, bdf: str, slices: tuple[Any, ...]) -> dict[str, Any]:
    memory = memory_of(nvml, handle, slices)
    util = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
    reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    uuids = [text_of(ask(nvml.nvmlDeviceGetUUID, device)) for device in slices or (handle,)]
    return {
        "index": index,
        "uuid": ",".join(uuids) or None,
        "used": None if memory is None else memory.used,
        "total": None if memory is None else memory.total,
        "util": None if util is None else int(util.gpu),
        "power_w": None if power is None else round(power / 1000.0, 1),
        "temp_c": ask(nvml.nvmlDeviceGetTemperature, handle, 0),
        "throttle": [
            name for bit, name in REASONS.items() if reasons is not None and reasons & bit
        ],
        "ecc": ask(nvml.nvmlDeviceGetTotalEccErrors, handle, 1, 0),
        "bdf": bdf,
        "lost": memory is None and is_lost(nvml, handle),
    }


def main() -> None:
    every = float(sys.argv[1])
    parent = os.getppid()
    try:
        import pynvml as nvml

        nvml.nvmlInit()
        selection = Selection(nvml, (*sys.argv, "all")[2], "pci" in sys.argv[3:])
    except Exception:
        return  # no GPU to sample; the check says why
    chosen = selection.chosen
    handles = [
        (index, handle)
        for index, handle in enumerate(selection.handles)
        if index in chosen and handle is not None
    ]
    events = Events(nvml, handles)
    places = {index: address(nvml, handle) for index, handle in handles}
    xids: list[dict[str, Any]] = []
    while os.getppid() == parent:
        rows = [
            read(nvml, handle, index, places[index], chosen[index]) for index, handle in handles
        ]
        line = {"t": time.time(), "gpus": rows, "xids": xids}
        line.update(others=selection.others, unsure=selection.unsure)
        try:
            print(json.dumps(line), flush=True)
        except (OSError, ValueError):
            return
        xids = events.wait(every)


if __name__ == "__main__":
    main()
