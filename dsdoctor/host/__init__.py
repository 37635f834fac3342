"""The only door to the machine.

`door` says what probes may ask; `local` is this machine, `replay` a recorded one, `recording` saves
the questions and answers of another host, `fake` consists of dictionaries.
"""

from __future__ import annotations

from dsdoctor.host.door import (
    READ_LIMIT,
    TOOL_SECONDS,
    DiskUsage,
    Host,
    HostError,
    Stat,
    exists,
    home_folder,
    matches,
    read_text,
    real_path,
)

# not from `typing`: every command imports this package, few of them a host
TYPE_CHECKING = False
if TYPE_CHECKING:
    from dsdoctor.host.local import NETWORK_FILE_SYSTEMS, LocalHost, free_port
    from dsdoctor.host.recording import RecordingHost
    from dsdoctor.host.replay import ReplayHost

_LAZY = {
    "NETWORK_FILE_SYSTEMS": "local",
    "LocalHost": "local",
    "RecordingHost": "recording",
    "ReplayHost": "replay",
    "free_port": "local",
}

__all__ = [
    "NETWORK_FILE_SYSTEMS",
    "READ_LIMIT",
    "TOOL_SECONDS",
    "DiskUsage",
    "Host",
    "HostError",
    "LocalHost",
    "RecordingHost",
    "ReplayHost",
    "Stat",
    "exists",
    "free_port",
    "home_folder",
    "matches",
    "read_text",
    "real_path",
]


def __getattr__(name: str) -> object:
    """Imports a host when it is first used."""
    if name not in _LAZY:
        raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
    import importlib  # noqa: PLC0415  # only for the first use of a name

    return getattr(importlib.import_module(f"{__name__}.{_LAZY[name]}"), name)
