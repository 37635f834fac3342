"""The terminal of a job: a pseudo-terminal if we have a terminal, so that colors and bars work."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

if sys.platform != "win32":
    import fcntl
    import pty
    import termios
    import tty


class Terminal:
    """A pseudo-terminal between the job and the terminal that dsdoctor was started in.

    The job's side gets the settings of the outer terminal. The outer terminal is raw while it is
    standard input and we are in its foreground. Every key, including Ctrl-C, then reaches the job's
    side, which acts on it.

    Attributes:
        outer: our side.
        inner: the job's side; closed once the job has started.
        typed: standard input is the outer terminal.
    """

    def __init__(self) -> None:
        self.outer, self.inner = pty.openpty()
        self._saved: list[object] | None = None
        self._processing = 0
        self.typed = _is_terminal(0)
        #: Settings of the job's side after a start with `&`, taken while the shell edits a line.
        self._of_shell: list[object] | None = None
        with contextlib.suppress(termios.error, OSError):
            settings = termios.tcgetattr(0 if self.typed else 1)
            self._processing = settings[1] & termios.OPOST
            in_front = self.typed and is_foreground()
            if not in_front:
                settings[1] &= ~termios.OPOST  # the outer terminal does it once
            termios.tcsetattr(self.inner, termios.TCSANOW, settings)
            if self.typed and not in_front:
                self._of_shell = termios.tcgetattr(self.inner)
        self.resize()

    def resize(self) -> None:
        """Gives the job's side the size of the outer terminal."""
        with contextlib.suppress(OSError):
            size = fcntl.ioctl(1, termios.TIOCGWINSZ, b"\0" * 8)
            fcntl.ioctl(self.outer, termios.TIOCSWINSZ, size)

    def begin(self) -> None:
        """Called after the start of the job, which has its own descriptors of its side."""
        os.close(self.inner)

    @property
    def held(self) -> bool:
        """Whether the outer terminal is raw."""
        return self._saved is not None

    def hold(self) -> bool:
        """Makes the outer terminal raw, so that every key is forwarded; False if it cannot."""
        if self.typed and self._saved is None:
            with contextlib.suppress(termios.error, OSError):
                self._saved = termios.tcgetattr(0)
                self._settle(self._saved)
                tty.setraw(0, termios.TCSANOW)
                self._process_output(self._processing)
        return self.held

    def _settle(self, shells: list[object]) -> None:
        """Copies settings to the job's side when it first comes to the foreground.

        Args:
            shells: settings of the outer terminal, made by the shell for a job in the foreground.
        """
        before, self._of_shell = self._of_shell, None
        if before is not None and termios.tcgetattr(self.outer) == before:  # the job's own stay
            self._processing = shells[1] & termios.OPOST  # type: ignore[operator]  # an int
            termios.tcsetattr(self.outer, termios.TCSANOW, shells)  # type: ignore[arg-type]  # as read

    def _process_output(self, flag: int) -> None:
        """Sets whether the job's side turns line feeds into new lines.

        The outer terminal does so while it is not raw.
        """
        with contextlib.suppress(termios.error, OSError):
            settings = termios.tcgetattr(self.outer)
            settings[1] = settings[1] & ~termios.OPOST | flag
            termios.tcsetattr(self.outer, termios.TCSANOW, settings)

    def release(self) -> None:
        """Restores the settings of the outer terminal."""
        if self._saved is not None:
            with contextlib.suppress(termios.error, OSError):
                termios.tcsetattr(0, termios.TCSADRAIN, self._saved)  # type: ignore[arg-type]  # as read
            self._saved = None
            self._process_output(0)

    def interrupts(self, keys: bytes) -> list[int]:
        """Signals that the job's side sends for keys such as Ctrl-C, unless it is raw."""
        try:
            settings = termios.tcgetattr(self.outer)
        except (termios.error, OSError):
            return []
        if not settings[3] & termios.ISIG:
            return []
        makers = ((termios.VINTR, signal.SIGINT), (termios.VQUIT, signal.SIGQUIT))
        typed = {settings[6][key]: number for key, number in makers}
        return [number for key, number in typed.items() if key != b"\0" and key in keys]

    def suspends(self, keys: bytes, group: int) -> bool:
        """Whether a key suspends the job, as Ctrl-Z does by default.

        The job leads its own session, in which the kernel stops nothing (its group has no parent in
        that session).

        Args:
            keys: what was typed.
            group: of the job; a shell inside it looks after its own jobs.
        """
        try:
            settings = termios.tcgetattr(self.outer)
            in_front = os.tcgetpgrp(self.outer) == group
        except (termios.error, OSError):
            return False
        key = settings[6][termios.VSUSP]
        means_it = settings[3] & termios.ISIG and key != b"\0" and key in keys
        return bool(means_it) and in_front and not _handles_stop(group)


def _handles_stop(pid: int) -> bool:
    """Whether a process ignores or handles SIGTSTP instead of stopping."""
    try:
        status = Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    masks = [line.split()[1] for line in status.splitlines() if line[:7] in ("SigIgn:", "SigCgt:")]
    return any(int(mask, 16) >> (signal.SIGTSTP - 1) & 1 for mask in masks)


def is_foreground() -> bool:
    """Whether standard input is a terminal with us in the foreground.

    This includes a terminal that is not our controlling terminal: no shell moves us there.
    """
    if not _is_terminal(0):
        return False
    try:
        return os.tcgetpgrp(0) == os.getpgrp()
    except OSError:
        return True


def _is_terminal(number: int) -> bool:
    try:
        return os.isatty(number)
    except OSError:
        return False


def is_wanted() -> bool:
    """Whether the job gets a pseudo-terminal: its output would go to a terminal otherwise."""
    return sys.platform != "win32" and _is_terminal(1)
