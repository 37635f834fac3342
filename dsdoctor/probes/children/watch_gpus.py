r"""Sample every GPU through NVML, one JSON line each time, in a process that may hang.

    python watch_gpus.py SECONDS

Prints {"t": epoch, "gpus": [{"index", "uuid", "name", "used", "total", "util", "power_w",
"temp_c", "throttle": [names], "ecc": uncorrected errors since the driver was loaded, "bdf",
"lost": the driver no longer reaches it}], "xids": [{"gpu", "bdf", "code"}] since the last line}. A
value that the driver does not report is null. An Xid is printed at once. Ends when its output is
closed. Standard library and pynvml, Python 3.8 and later.
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
    """`0000:3b:00`, as the kernel's log writes it; "" where it is not known."""
    pci = ask(nvml.nvmlDeviceGetPciInfo, handle)
    if pci is None:
        return ""
    text = pci.busId.decode() if isinstance(pci.busId, bytes) else str(pci.busId)
    return text.lower().rpartition(".")[0][-10:]


class Events:
    """Xids, as the driver reports them to whoever waits; needs no access to the kernel's log."""

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
                pass  # nothing happened, or the driver has no events
        time.sleep(max(0.0, until - time.monotonic()))
        return []


def read(nvml: Any, handle: Any, index: int, bdf: str) -> dict[str, Any]:
    memory = ask(nvml.nvmlDeviceGetMemoryInfo, handle)
    util = ask(nvml.nvmlDeviceGetUtilizationRates, handle)
    power = ask(nvml.nvmlDeviceGetPowerUsage, handle)
    reasons = ask(nvml.nvmlDeviceGetCurrentClocksThrottleReasons, handle)
    uuid = ask(nvml.nvmlDeviceGetUUID, handle)
    return {
        "index": index,
        "uuid": uuid.decode() if isinstance(uuid, bytes) else uuid,
        "used": None if memory is None else int(memory.used),
        "total": None if memory is None else int(memory.total),
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
        count = nvml.nvmlDeviceGetCount()
        handles = [(index, ask(nvml.nvmlDeviceGetHandleByIndex, index)) for index in range(count)]
    except Exception:
        return  # no GPU to sample; the check says why
    events = Events(nvml, handles)
    places = {index: address(nvml, handle) for index, handle in handles if handle is not None}
    xids: list[dict[str, Any]] = []
    while os.getppid() == parent:
        rows = [
            read(nvml, handle, index, places[index])
            for index, handle in handles
            if handle is not None
        ]
        try:
            print(json.dumps({"t": time.time(), "gpus": rows, "xids": xids}), flush=True)
        except (OSError, ValueError):
            return
        xids = events.wait(every)


if __name__ == "__main__":
    main()
