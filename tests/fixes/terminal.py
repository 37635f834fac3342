"""A terminal on which the command is run and its questions are answered."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import struct
import subprocess
import sys
import termios
import time


def on_terminal(
    argv: list[str],
    env: dict[str, str],
    *answers: str,
    question: bytes = b"apply this plan?",
    columns: int = 100,
    seconds: float = 400,
) -> tuple[str, int]:
    """Runs the command on a terminal of its own; what was shown, and the exit status.

    Args:
        argv: arguments of dsdoctor.
        env: its environment.
        answers: typed one after the other, each when the question is asked once more.
        question: what is waited for before each answer.
        columns: width of the terminal.
        seconds: how long it may take.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))

    child = subprocess.Popen(
        # it is its own terminal, so that a typed Ctrl-C is a signal
        ["setsid", "--ctty", sys.executable, "-m", "dsdoctor", *argv],
        stdin=theirs, stdout=theirs, stderr=theirs, env=env,
    )  # fmt: skip
    os.close(theirs)
    left, shown, seen, end = list(answers), b"", 0, time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([ours], [], [], 0.2)[0]:
            try:
                chunk = os.read(ours, 4096)
            except OSError:  # Linux: nobody is at the other end any more
                break
            if not chunk:
                break
            shown += chunk
        asked = shown.find(question, seen)
        if left and asked >= 0:
            seen = asked + len(question)
            os.write(ours, left.pop(0).encode())
    os.close(ours)
    return shown.decode(errors="replace"), child.wait(timeout=200)
