"""The only door to the machine.

`door` says what probes may ask; `local` is this machine, `replay` a recorded one, `recording` keeps
the questions and answers of another host, `fake` is made of dictionaries.
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
    read_text,
)
from dsdoctor.host.local import NETWORK_FILE_SYSTEMS, LocalHost, free_port
from dsdoctor.host.recording import RecordingHost
from dsdoctor.host.replay import ReplayHost

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
    "read_text",
]
