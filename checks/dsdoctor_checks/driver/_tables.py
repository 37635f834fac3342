"""Driver versions and error numbers from NVIDIA's documentation. Read 2026-11-21."""

from __future__ import annotations

from dsdoctor_checks._util import numbers

#: Minimum driver for each CUDA major version, by minor-version compatibility.
#: docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html
FLOOR: dict[int, str] = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}

#: Minimum driver of the CUDA versions before minor-version compatibility, on Linux.
#: CUDA 11.4 toolkit release notes, table 2 (docs.nvidia.com/cuda/archive/11.4.0).
EXACT_FLOOR: dict[str, str] = {
    "9.0": "384.81",
    "9.1": "390.46",
    "9.2": "396.26",
    "10.0": "410.48",
    "10.1": "418.39",
    "10.2": "440.33",
}

#: Driver that shipped with each toolkit, which fully supports that CUDA version.
#: CUDA 13.4 U1 toolkit release notes, table 3.
OWN_DRIVER: dict[str, str] = {
    "11.0": "450.36.06",
    "11.1": "455.23",
    "11.2": "460.27.03",
    "11.3": "465.19.01",
    "11.4": "470.42.01",
    "11.5": "495.29.05",
    "11.6": "510.39.01",
    "11.7": "515.43.04",
    "11.8": "520.61.05",
    "12.0": "525.60.13",
    "12.1": "530.30.02",
    "12.2": "535.54.03",
    "12.3": "545.23.06",
    "12.4": "550.54.14",
    "12.5": "555.42.02",
    "12.6": "560.28.03",
    "12.8": "570.26",
    "12.9": "575.51.03",
    "13.0": "580.65.06",
    "13.1": "590.44.01",
    "13.2": "595.45.04",
    "13.3": "610",
    "13.4": "615",
}

#: CUDA errors at initialization (cuda runtime 13.2, driver_types.h).
NAMES: dict[int, str] = {
    3: "cudaErrorInitializationError",
    34: "cudaErrorStubLibrary",
    35: "cudaErrorInsufficientDriver",
    802: "cudaErrorSystemNotReady",
    803: "cudaErrorSystemDriverMismatch",
    804: "cudaErrorCompatNotSupportedOnDevice",
    805: "cudaErrorMpsConnectionFailed",
    999: "cudaErrorUnknown",
}
TOO_OLD = 35
NOT_READY = 802
MISMATCH = 803
COMPAT_UNSUPPORTED = 804

#: NVML return codes (nvml.h 13.5.37).
NVML_DRIVER_NOT_LOADED = 9
NVML_NO_PERMISSION = 4
NVML_LIBRARY_NOT_FOUND = 12
NVML_VERSION_MISMATCH = 18
NVML_UNKNOWN = 999


def floor(cuda: tuple[int, int]) -> str | None:
    """The minimum driver for a CUDA version; None if the table does not have it.

    >>> floor((12, 8)), floor((10, 2)), floor((8, 0))
    ('525.60.13', '440.33', None)
    """
    return FLOOR.get(cuda[0]) or EXACT_FLOOR.get(f"{cuda[0]}.{cuda[1]}")


def supported(driver: str) -> str | None:
    """The newest CUDA version that a driver fully supports; None for a driver before CUDA 9.

    >>> supported("535.104.05"), supported("580.95.05"), supported("610.43.02"), supported("375.1")
    ('12.2', '13.0', '13.3', None)
    >>> supported("418.67")
    '10.1'
    """
    have = numbers(driver)
    drivers = EXACT_FLOOR | OWN_DRIVER
    fitting = [cuda for cuda, own in drivers.items() if numbers(own) <= have]
    return fitting[-1] if fitting else None
