"""The only code that starts processes: deadlines, marker, sweep (docs/architecture.md).

Every child gets its own session and `DSDOCTOR_RUN=<uuid>` in its environment. The workers of
torchrun start further sessions, so killing the process group is not enough: descendants are found
by the marker in `/proc/*/environ`. A child that cannot be killed (state D) is abandoned.
"""

from typing import TYPE_CHECKING, Any

from dsdoctor.process.attached import Attached, start_attached
from dsdoctor.process.detached import Detached, start_detached
from dsdoctor.process.guard import Guard
from dsdoctor.process.marker import (
    MARKER,
    RUN_ID,
    become_subreaper,
    carries_marker,
    is_rank,
    marked,
    marked_pids,
)
from dsdoctor.process.own import own_module
from dsdoctor.process.signals import signal_one
from dsdoctor.process.sweep import kill_all, sweep
from dsdoctor.process.workers import parallel

if TYPE_CHECKING:
    from dsdoctor.process.child import OUTPUT_LIMIT, Account, Child, Result, run

__all__ = [
    "MARKER",
    "OUTPUT_LIMIT",
    "RUN_ID",
    "Account",
    "Attached",
    "Child",
    "Detached",
    "Guard",
    "Result",
    "become_subreaper",
    "carries_marker",
    "is_rank",
    "kill_all",
    "marked",
    "marked_pids",
    "own_module",
    "parallel",
    "run",
    "signal_one",
    "start_attached",
    "start_detached",
    "sweep",
]


def __getattr__(name: str) -> Any:
    """Imports `child` on first use: a gate starts its worker without msgspec."""
    if name not in ("OUTPUT_LIMIT", "Account", "Child", "Result", "run"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from dsdoctor.process import child  # noqa: PLC0415  # only for the first use of a name

    globals()[name] = getattr(child, name)
    return globals()[name]
