"""Prints lines of dsdoctor on stderr while a job writes to the same terminal or file."""

from __future__ import annotations

from collections.abc import Callable

from dsdoctor.run.relay import Relay

#: Prints one line.
PrintLine = Callable[[str], None]
_STDERR = 2


class LinePrinter:
    """Prints lines; first ends an incomplete line of the job, such as a progress bar.

    Attributes:
        relay: of the job that runs or ran last.
    """

    def __init__(self, say: PrintLine) -> None:
        self._say = say
        self.relay: Relay | None = None

    def __call__(self, text: str) -> None:
        """Prints a line."""
        if self.relay is not None:
            self.relay.end_line(_STDERR)
        self._say(text)
