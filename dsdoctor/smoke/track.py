"""Where each rank is, according to the lines that it wrote; other signs do not count."""

from __future__ import annotations

import contextlib
import dataclasses
import platform
from pathlib import Path

import msgspec

from dsdoctor.model.smoke import PHASES, Event

#: Seconds that one phase of one rank may take; `build-ops` compiles, the first time for minutes.
DEADLINES = {
    "spawn": 120.0,
    "import": 120.0,
    "device": 60.0,
    "rendezvous": 60.0,
    "collectives": 60.0,
    "numerics": 60.0,
    "build-ops": 900.0,
    "engine-init": 180.0,
    "steps": 240.0,
    "checkpoint": 120.0,
    "teardown": 60.0,
}


@dataclasses.dataclass
class Progress:
    """What one rank has reported.

    Attributes:
        rank: its number.
        events: its lines, in order.
        since: when (on this process's clock) its current phase was first seen.
        died: when (on the same clock) its process was found to have ended before it had finished.
        terminated: whether it received SIGTERM, which a launcher sends to the remaining ranks;
            such a rank did not die first.
    """

    rank: int
    events: list[Event] = dataclasses.field(default_factory=list)
    since: float = 0.0
    died: float | None = None
    terminated: bool = False

    @property
    def phase(self) -> str:
        """Where it is or was last."""
        return self.events[-1].phase if self.events else "spawn"

    @property
    def between(self) -> bool:
        """Whether its last phase is complete."""
        return bool(self.events) and self.events[-1].state == "ok"

    @property
    def pid(self) -> int | None:
        """Its process."""
        return self.events[0].pid if self.events else None

    @property
    def is_here(self) -> bool:
        """Whether it runs on this host, where its process number is valid."""
        names = (event.data["host"] for event in self.events if "host" in event.data)
        return next(names, None) == platform.node()

    @property
    def done(self) -> bool:
        """Whether it reported that it finished."""
        return any(event.state == "done" for event in self.events)

    @property
    def failure(self) -> Event | None:
        """The phase that it reported as failed."""
        return next((event for event in self.events if event.state == "fail"), None)

    def ended(self, phase: str) -> Event | None:
        """The end of a phase; None while it is open."""
        for event in self.events:
            if event.phase == phase and event.state in ("ok", "fail"):
                return event
        return None

    @property
    def step(self) -> int:
        """Training steps that it has completed."""
        return sum(1 for event in self.events if event.state == "note" and "loss" in event.data)

    def place(self) -> str:
        """Phase, and where in it: `steps (step 3)`."""
        for event in reversed(self.events):
            if event.state == "note" and event.phase == self.phase:
                for key in ("operation", "op", "step"):
                    if key in event.data:
                        value = event.data[key]
                        return f"{self.phase} ({key} {value})" if key == "step" else (
                            f"{self.phase} ({value})"
                        )  # fmt: skip
        return self.phase


class Tracker:
    """Reads the files of all ranks as they grow.

    Args:
        folder: where the ranks write.
        world: number of ranks.
        per_cpu: ranks of a host per CPU that they may use. Ranks that share a CPU import, compile
            and end in turns, so a phase takes that many times longer.
    """

    def __init__(self, folder: Path, world: int, per_cpu: float = 1.0) -> None:
        self.ranks = [Progress(rank) for rank in range(world)]
        self._per_cpu = max(1.0, per_cpu)
        self._folder = folder
        self._offsets = [0] * world

    def read(self, now: float) -> bool:
        """Reads new lines; returns whether there were any."""
        new = False
        for progress in self.ranks:
            for event in self._lines(progress.rank):
                if event.phase != progress.phase or not progress.events:
                    progress.since = now
                progress.events.append(event)
                new = True
        return new

    def note_death(self, progress: Progress, now: float) -> None:
        """Records that the process of a rank has ended, and whether it had received SIGTERM."""
        progress.died = now
        with contextlib.suppress(OSError):
            written = (self._folder / f"rank-{progress.rank}.sigterm").stat().st_size
            progress.terminated = written > 0

    def _lines(self, rank: int) -> list[Event]:
        path = self._folder / f"rank-{rank}.jsonl"
        try:
            with path.open("rb") as stream:
                stream.seek(self._offsets[rank])
                data = stream.read()
        except OSError:
            return []
        whole, cut, _ = data.rpartition(b"\n")
        self._offsets[rank] += len(whole) + len(cut)
        found = []
        for line in whole.splitlines():
            # a rank that dies may leave an incomplete line
            with contextlib.suppress(msgspec.DecodeError, msgspec.ValidationError):
                event = msgspec.json.decode(line, type=Event)
                if event.rank == rank and event.phase in PHASES:
                    found.append(event)
        return found

    @property
    def all_done(self) -> bool:
        """Whether every rank reported that it finished."""
        return all(progress.done for progress in self.ranks)

    def limit(self, phase: str) -> float:
        """Seconds that a rank may spend in a phase."""
        return DEADLINES[phase] * self._per_cpu

    def overdue(self, now: float) -> list[Progress]:
        """Ranks that have exceeded the time limit of their phase."""
        return [
            progress
            for progress in self.ranks
            if not progress.done
            and progress.died is None
            and now - progress.since > self.limit(progress.phase)
        ]
