"""Workers of Ray that died: Ray reports how one ended, and lists what may have ended it."""

from __future__ import annotations

from collections.abc import Mapping

from dsdoctor.logs.errors import Error
from dsdoctor.logs.marks import mark_pattern

#: What the process that waits for a worker raises (ray 2.0-2.54 python/ray/exceptions.py).
DEATHS = frozenset({"ActorDiedError", "OwnerDiedError", "RayActorError", "WorkerCrashedError"})
#: The mark of a worker that died, that of its exit type, and that of its rank in Ray Train.
DIED, EXIT, RANK = "ray-worker", "ray-exit", "ray-rank"


def is_death(error: Error | None, marks: Mapping[str, object]) -> bool:
    """Whether the log only says that a worker of Ray died."""
    return error.type in DEATHS if error is not None else has_died(marks)


def has_died(marks: Mapping[str, object]) -> bool:
    """Whether Ray reports that a worker died.

    >>> has_died({"ray-exit": ()}), has_died({"ray-exit": (), "ray-rank": ()})
    (False, True)
    """
    return DIED in marks or (EXIT in marks and RANK in marks)


def told(marks: Mapping[str, tuple[int, str, int]]) -> str:
    """What is known of the death, and where the worker's own output is.

    >>> told({"ray-exit": (3, "Worker exit type: SYSTEM_ERROR Worker exit detail: x", 0)})[:36]
    'a worker of Ray died (SYSTEM_ERROR),'
    """
    found = mark_pattern(EXIT).search(marks[EXIT][1]) if EXIT in marks else None
    how = f" ({found['v']})" if found else ""
    ranked = mark_pattern(RANK).search(marks[RANK][1]) if RANK in marks else None
    who = f"rank {ranked['n']}, a worker of Ray," if ranked else "a worker of Ray"
    return (
        f"{who} died{how}, and the log does not show why; its own output is under "
        "`/tmp/ray/session_latest/logs` on its node"
    )
