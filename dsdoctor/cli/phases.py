"""What `smoke` shows while it runs: bars of its phases on a terminal, else a line now and then."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

from dsdoctor.model.smoke import PHASES

#: Below this width a row has no more than name, bar and time.
NOTE_COLUMNS = 60
BAR_COLUMNS = 16
#: How often a log gets a line that says that the run continues, in seconds.
LINE_SECONDS = 10.0


def shown(*, terminal: bool) -> PhaseBars | PhaseLines:
    """Shows the phases on stderr: bars on a terminal, else lines."""
    return PhaseBars(enabled=True) if terminal else PhaseLines()


class PhaseLines:
    """Prints a line on stderr now and then: a build of ops prints nothing for minutes.

    Nothing is printed in the first `every` seconds, so a short run stays quiet.
    """

    def __init__(
        self, every: float = LINE_SECONDS, write: Callable[[str], object] = sys.stderr.write
    ) -> None:
        self._every = every
        self._write = write
        self._begun = time.monotonic()
        self._state = "starting"
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def update(self, phase: str, note: str = "", share: float | None = None) -> None:
        """Takes the state of the run, as `PhaseBars.update`."""
        del share
        self._state = f"{phase}: {note}" if note else phase

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            seconds = time.monotonic() - self._begun
            # a closed pipe is noticed when the report is written
            with contextlib.suppress(OSError, ValueError):
                self._write(f"dsdoctor: {self._state} ({seconds:.0f} s)\n")

    def close(self) -> None:
        """Stops writing."""
        self._closed.set()
        self._thread.join()


class PhaseBars:
    """Shows on stderr the phases that the slowest rank has finished, and its current one.

    Disappears when it is closed: the report repeats the phases.
    """

    def __init__(self, *, enabled: bool) -> None:
        self._progress: Any = None
        self._rows: dict[str, Any] = {}
        self._stack = contextlib.ExitStack()
        if enabled:
            self._start()

    def _start(self) -> None:
        from rich import progress  # noqa: PLC0415  # plain runs need no rich
        from rich.console import Console  # noqa: PLC0415

        console = Console(stderr=True)
        columns: list[progress.ProgressColumn] = [
            progress.TextColumn("{task.description}", table_column=_no_wrap()),
            progress.BarColumn(bar_width=BAR_COLUMNS),
            progress.TimeElapsedColumn(),
        ]
        if console.width >= NOTE_COLUMNS:
            columns.append(progress.TextColumn("{task.fields[note]}", table_column=_wrapped()))
        self._progress = progress.Progress(
            *columns, console=console, transient=True, refresh_per_second=4
        )
        self._stack.enter_context(self._progress)

    def update(self, phase: str, note: str = "", share: float | None = None) -> None:
        """Takes the state of the run.

        Args:
            phase: one of PHASES, or what the bisection tries.
            note: progress within it.
            share: how much of it is done, 0 to 1; None if unknown.
        """
        if self._progress is None:
            return
        if phase not in self._rows:
            self._begin_phase(phase)
        total = None if share is None else 1.0
        self._progress.update(self._rows[phase], note=note, total=total, completed=share or 0.0)

    def _begin_phase(self, phase: str) -> None:
        if phase not in PHASES:
            # the phases of the first run make room for a try
            for row in self._rows.values():
                self._progress.remove_task(row)
            self._rows.clear()
        for row in self._rows.values():
            self._progress.update(row, total=1.0, completed=1.0, note="")
            self._progress.stop_task(row)
        self._rows[phase] = self._progress.add_task(phase, total=None, note="")

    def close(self) -> None:
        """Removes the bars."""
        self._stack.close()


def _no_wrap() -> Any:
    from rich.table import Column  # noqa: PLC0415  # plain runs need no rich

    return Column(no_wrap=True, overflow="ellipsis")


def _wrapped() -> Any:
    """The one column that wraps, so rich shortens none of the others."""
    from rich.table import Column  # noqa: PLC0415  # plain runs need no rich

    return Column(overflow="fold")
