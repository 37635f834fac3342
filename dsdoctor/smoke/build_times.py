"""How long DeepSpeed's ops took to compile, so that the next build says what to expect."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import platformdirs

from dsdoctor import files
from dsdoctor.run.notices import duration
from dsdoctor.smoke.track import Progress

PHASE = "build-ops"
#: An op that is built already is loaded in less; one that compiles takes longer.
COMPILED_SECONDS = 5.0


def _place() -> Path:
    return Path(platformdirs.user_state_dir("dsdoctor"), "op-builds.json")


def known() -> dict[str, float]:
    """Op to seconds of its last build on this account; empty where none is known."""
    try:
        return msgspec.json.decode(files.read(_place(), strict=True), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def remember(ranks: Iterable[Progress]) -> None:
    """Keeps what the ranks of this host have just compiled."""
    took: dict[str, float] = {}
    for rank in ranks:
        end = rank.ended(PHASE) if rank.is_here else None
        for op, seconds in (end.data.get("seconds") or {} if end else {}).items():
            took[op] = max(seconds, took.get(op, 0.0))
    fresh = {op: seconds for op, seconds in took.items() if seconds >= COMPILED_SECONDS}
    if fresh:
        with contextlib.suppress(OSError):
            data = msgspec.json.encode({**known(), **fresh})
            files.write(_place(), data, mode=0o600, make=0o700, strict=True)


def expectation(rank: Progress, times: dict[str, float]) -> str:
    """How long the op that a rank builds may take, in words."""
    notes = [event for event in rank.events if event.phase == PHASE and "op" in event.data]
    seconds = times.get(str(notes[-1].data["op"])) if notes else None
    if seconds is None:
        return "the first build takes minutes"
    return f"the last build took {duration(seconds)}"
