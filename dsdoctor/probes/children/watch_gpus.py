r"""Sample every GPU through NVML, one JSON line each time, in a process that may hang.

    python watch_gpus.py SECONDS

Prints {"t": epoch, "gpus": [{"index", "uuid", "name", "used", "total", "util", "power_w",
"temp_c", "throttle": [names], "ecc": uncorrected errors since the driver was loaded}]}. A value
that the driver does not report is null. Ends when its output is closed. Standard library and
pynvml, Python 3.8 and later.
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


def ask(function: Callable[..., Any], *args: Any) -> Any:
    try:
        return function(*args)
    except Exception:
        return None


def read(nvml: Any, handle: Any, index: int) -> dict[str, Any]:
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
    while os.getppid() == parent:
        rows = [read(nvml, handle, index) for index, handle in handles if handle is not None]
        lost = [index for index, handle in handles if handle is None]
        try:
            print(json.dumps({"t": time.time(), "gpus": rows, "lost": lost}), flush=True)
        except (OSError, ValueError):
            return
        time.sleep(every)


if __name__ == "__main__":
    main()
