"""A process that may outlive this one: the worker of a gate, which may hang in a driver."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsdoctor import files
from dsdoctor.process.signals import POSIX, signal_group


class Detached:
    """A process that may be left running; no pipe connects it to this one.

    Attributes:
        pid: its process id, and on POSIX the id of its group and session.
        output: the file that both its streams go to.
    """

    def __init__(self, child: subprocess.Popen[bytes], output: Path) -> None:
        self._child = child
        self.pid = child.pid
        self.output = output

    def poll(self) -> int | None:
        """Exit status; None while it runs. Never waits."""
        return self._child.poll()

    def kill(self) -> None:
        """Sends SIGKILL to its group and does not wait, because it may not end."""
        if self._child.poll() is None:
            signal_group(self.pid, signal.SIGKILL if POSIX else signal.SIGTERM)

    def end(self, seconds: float) -> None:
        """Sends SIGTERM, so that it can end its own children, and SIGKILL after `seconds`."""
        if self._child.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                self._child.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(seconds)
        self.kill()

    def __del__(self) -> None:
        # left behind on purpose: no warning that it still runs
        if self._child.returncode is None:
            self._child.returncode = -1


def start_detached(
    argv: Sequence[str],
    *,
    output: Path,
    env: Mapping[str, str] | None = None,
    keep: Sequence[int] = (),
) -> Detached:
    """Starts a process in its own session, which may outlive this process.

    Args:
        argv: the command.
        output: file for its streams, which is replaced.
        env: its environment, without the marker, so that no sweep ends it.
        keep: descriptors that it inherits (a lock).

    Raises:
        OSError: the program or the file cannot be opened.
    """
    with os.fdopen(files.open_new(output, mode=0o644, strict=True), "wb") as file:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            env=None if env is None else dict(env),
            start_new_session=POSIX,
            pass_fds=tuple(keep),
            cwd="/" if POSIX else None,
        )
    return Detached(child, output)
