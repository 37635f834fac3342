"""How long DeepSpeed's ops took to compile, as an estimate for the next build."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec
import platformdirs

from dsdoctor import files
from dsdoctor.report.durations import duration
from dsdoctor.smoke.track import Progress

PHASE = "build-ops"
#: Loading a built op takes less than this; compiling takes longer.
COMPILED_SECONDS = 5.0


def _place() -> Path:
    return Path(platformdirs.user_state_dir("dsdoctor"), "op-builds.json")


def last_builds() -> dict[str, float]:
    """Op to seconds of its last build by this account; empty if none is known."""
    try:
        return msgspec.json.decode(files.read(_place(), strict=True), type=dict[str, float])
    except (OSError, msgspec.DecodeError):
        return {}


def remember(ranks: Iterable[Progress]) -> None:
    """Stores the build times of the ops that the ranks of this host have just compiled."""
    took: dict[str, float] = {}
    for rank in ranks:
        end = rank.ended(PHASE) if rank.is_here else None
        for op, seconds in (end.data.get("seconds") or {} if end else {}).items():
            took[op] = max(seconds, took.get(op, 0.0))
    fresh = {op: seconds for op, seconds in took.items() if seconds >= COMPILED_SECONDS}
    if fresh:
        with contextlib.suppress(OSError):
            data = msgspec.json.encode({**last_builds(), **fresh})
            files.write(_place(), data, mode=0o600, make=0o700, strict=True)


def compiling(ranks: Iterable[Progress], times: dict[str, float]) -> str:
    """The ops that ranks are loading, with estimated times, as text; empty between two ops."""
    expected: dict[str, list[str]] = {}
    for op in dict.fromkeys(op for rank in ranks if (op := _loading(rank)) is not None):
        expected.setdefault(_expectation(times.get(op)), []).append(op)
    return ", ".join(f"{', '.join(ops)} ({estimate})" for estimate, ops in expected.items())


def _loading(rank: Progress) -> str | None:
    """The op that a rank is loading."""
    if rank.phase != PHASE:
        return None
    for event in reversed(rank.events):
        if "loaded" in event.data:
            return None
        if "op" in event.data:
            return str(event.data["op"])
    return None


def _expectation(seconds: float | None) -> str:
    if seconds is None:
        return "the first build takes minutes"
    return f"the last build took {duration(seconds)}"
