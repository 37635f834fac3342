"""The user's own command, in the foreground."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence

from dsdoctor.process.signals import POSIX, signal_group


class Attached:
    """The user's own command, in the foreground; the caller provides its streams.

    Nothing here ends it: no deadline, no marker, no sweep. `dsdoctor run` only observes it.

    Attributes:
        pid: its process id, and on POSIX the id of its group.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
        self.pid = child.pid

    def poll(self) -> int | None:
        """Exit status (negative: signal); None while it runs."""
        return self._child.poll()

    def wait(self, timeout: float) -> int | None:
        """Waits up to `timeout` seconds for its exit status; None if it still runs."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._child.wait(timeout)
        return self._child.returncode

    def stopped_by(self) -> int | None:
        """The signal that has stopped it since the last call; None if none has."""
        if not POSIX or self._child.returncode is not None:
            return None
        try:
            found = os.waitid(os.P_PID, self.pid, os.WSTOPPED | os.WNOHANG)
        except OSError:
            return None
        return None if found is None else found.si_status

    def signal_group(self, number: int) -> None:
        """Passes a signal on to the command and its group, unless the command has ended."""
        if self._child.poll() is None:
            signal_group(self.pid, number)


def start_attached(
    argv: Sequence[str],
    *,
    stdin: int | None,
    stdout: int,
    stderr: int,
    env: Mapping[str, str],
    terminal: int | None = None,
    foreground: int | None = None,
) -> Attached:
    """Starts the user's command in its own process group.

    Args:
        argv: the command.
        stdin: its standard input; None = inherited.
        stdout: descriptor for its output.
        stderr: descriptor for its errors.
        env: its environment.
        terminal: the child's side of a pseudo-terminal, which becomes its controlling terminal.
        foreground: a terminal whose foreground group it becomes, so that Ctrl-C reaches it and it
            may read.

    Raises:
        OSError: the program does not exist or may not be run.
    """

    def prepare() -> None:  # pragma: no cover  # runs in the child, before exec
        if terminal is not None:
            import fcntl  # noqa: PLC0415  # POSIX only
            import termios  # noqa: PLC0415

            fcntl.ioctl(terminal, termios.TIOCSCTTY, 0)
            return
        os.setpgid(0, 0)
        if foreground is not None:
            signal.signal(signal.SIGTTOU, signal.SIG_IGN)
            with contextlib.suppress(OSError):
                os.tcsetpgrp(foreground, os.getpid())
            signal.signal(signal.SIGTTOU, signal.SIG_DFL)

    child = subprocess.Popen(  # nothing else runs in this process yet
        list(argv),
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        env=dict(env),
        start_new_session=terminal is not None,
        preexec_fn=prepare if POSIX else None,  # noqa: PLW1509  # calls nothing that takes a lock
        restore_signals=True,
    )
    return Attached(child)
