"""The terminal of a job: a pseudo-terminal where we have one, so that colors and bars live."""

from __future__ import annotations

import contextlib
import os
import sys

if sys.platform != "win32":
    import fcntl
    import pty
    import termios
    import tty


class Terminal:
    """A pseudo-terminal between the job and the terminal that dsdoctor was started in.

    The job's side gets the settings of the outer one. While standard input is that terminal, it is
    raw, so that every key, Ctrl-C too, goes through to the job's side, which acts on it.

    Attributes:
        outer: our side.
        inner: the job's side; closed once the job has started.
    """

    def __init__(self) -> None:
        self.outer, self.inner = pty.openpty()
        self._saved: list[object] | None = None
        self.typed = _is_terminal(0)
        with contextlib.suppress(termios.error, OSError):
            settings = termios.tcgetattr(0 if self.typed else 1)
            if not self.typed:
                settings[1] &= ~termios.OPOST  # the outer terminal does it once
            termios.tcsetattr(self.inner, termios.TCSANOW, settings)
        self.resize()

    def resize(self) -> None:
        """Gives the job's side the size of the outer terminal."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self.outer, termios.TIOCSWINSZ, size)

    def begin(self) -> None:
        """After the start of the job: keys go through from now on."""
        os.close(self.inner)
        if self.typed:
            with contextlib.suppress(termios.error, OSError):
                self._saved = termios.tcgetattr(0)
                tty.setraw(0, termios.TCSANOW)

    def end(self) -> None:
        """Gives the outer terminal its settings back."""
        if self._saved is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]
            self._saved = None

    @property
    def is_raw(self) -> bool:
        """Whether a line of ours must end in a carriage return as well."""
        return self._saved is not None


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def wanted() -> bool:
    """Whether the job gets a pseudo-terminal: its output would go to a terminal without us."""
    return sys.platform != "win32" and _is_terminal(1)
