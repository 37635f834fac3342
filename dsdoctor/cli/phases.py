"""What is shown on a terminal while `smoke` runs: a bar for each phase."""

from __future__ import annotations

import contextlib
from typing import Any

from dsdoctor.model.smoke import PHASES

#: Below this width a row holds no more than name, bar and time.
NOTE_COLUMNS = 60
BAR_COLUMNS = 16


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
            columns.append(progress.TextColumn("{task.fields[note]}", table_column=_no_wrap()))
        self._progress = progress.Progress(
            *columns, console=console, transient=True, refresh_per_second=4
        )
        self._stack.enter_context(self._progress)

    def tell(self, phase: str, note: str = "", share: float | None = None) -> None:
        """Takes the state of the run.

        Args:
            phase: one of PHASES, or what is tried by the bisection.
            note: where in it.
            share: how much of it is done, 0 to 1; None where nobody can know.
        """
        if self._progress is None:
            return
        if phase not in self._rows:
            self._enter(phase)
        total = None if share is None else 1.0
        self._progress.update(self._rows[phase], note=note, total=total, completed=share or 0.0)

    def _enter(self, phase: str) -> None:
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
        """Takes the bars away."""
        self._stack.close()


def _no_wrap() -> Any:
    from rich.table import Column  # noqa: PLC0415

    return Column(no_wrap=True, overflow="ellipsis")
