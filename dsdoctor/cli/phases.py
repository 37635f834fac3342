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
    """What shows the phases on stderr."""
    return PhaseBars(enabled=True) if terminal else PhaseLines()


class PhaseLines:
    """A line on stderr for as long as the run goes on: a build of ops takes minutes in silence.

    Nothing is written in the first `every` seconds, so that a short run stays quiet.
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

    def tell(self, phase: str, note: str = "", share: float | None = None) -> None:
        """Takes the state of the run, as `PhaseBars.tell`."""
        del share
        self._state = f"{phase}: {note}" if note else phase

    def _run(self) -> None:
        while not self._closed.wait(self._every):
            seconds = time.monotonic() - self._begun
            # a reader that is gone is noticed where the report is written
            with contextlib.suppress(OSError, ValueError):
                self._write(f"dsdoctor: {self._state} ({seconds:.0f} s)\n")

    def close(self) -> None:
        """Stops writing."""
        self._closed.set()
        self._thread.join()


class PhaseBars:
    """Shows the phases that the slowest rank has been through, and the one that it is in.

    Shown on stderr, and gone when it is closed: the report names the phases again.
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

    def tell(self, phase: str, note: str = "", share: float | None = None) -> None:
        """Takes the state of the run.

        Args:
            phase: one of PHASES, or what is tried by the bisection.
            note: where in it.
            share: how much of it is done, 0 to 1; None if that is unknown.
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
    from rich.table import Column  # noqa: PLC0415

    return Column(no_wrap=True, overflow="ellipsis")


def _wrapped() -> Any:
    """The one column that gives way, so that rich shortens none of the others."""
    from rich.table import Column  # noqa: PLC0415

    return Column(overflow="fold")
