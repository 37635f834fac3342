"""Runs the whole suite in parts side by side: `python -m tests.support.suite PYTEST_OPTION…`.

Tests of launchers and hooks wait most of the time and others compute, so each part has some of both.
The exit status is that of the first part that failed, or 2 after Ctrl-C and if tests cannot be
collected.
"""

from __future__ import annotations

import math
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence

TESTS = "tests"
#: Folders of each part, divided by measured time (19 to 23 minutes each beside other work,
#: 2026-11-28), so that the parts end at about the same time; a last part has what no part lists, so
#: that no folder is forgotten.
LISTED = (
    ("smoke", "slurm", "checks", "logs"),
    ("hook", "run", "recommend", "fixes"),
)
#: pytest's exit status after Ctrl-C, and when tests cannot be collected.
INTERRUPTED = 2
#: How long parts may take to end after Ctrl-C, which reached them too: their fixtures end daemons.
GRACE_SECONDS = 60.0
#: How long is waited for the last lines of a part that has ended.
LAST_LINES_SECONDS = 5.0


def parts() -> list[list[str]]:
    """What pytest is given for each part."""
    listed = [[f"{TESTS}/{name}" for name in names] for names in LISTED]
    return [*listed, [TESTS, *(f"--ignore={path}" for names in listed for path in names)]]


def side_by_side(commands: Sequence[Sequence[str]], before: Sequence[str] = ()) -> int:
    """Runs commands at once and shows each whole line that they print as it comes.

    A run that is cut off has then said how far each part came. A line is marked with the number of
    its part, from 1.

    Args:
        commands: each with its arguments.
        before: a command that has to succeed before the first one starts, while the others run.

    Returns:
        INTERRUPTED if one was, which ends the others; else the first status that is not 0, or 0.
    """
    children: list[subprocess.Popen[bytes]] = []
    readers: list[threading.Thread] = []
    try:
        for number, command in enumerate(commands[1:], 2):
            children.append(_start(command))
            readers.append(_shown(children[-1], number))
        status = subprocess.run(before, check=False).returncode if before else 0
        if status == 0:
            first = _start(commands[0])
            children.insert(0, first)
            readers.append(_shown(first, 1))
            status = _wait(children)
    except KeyboardInterrupt:  # a terminal sends it to all of them
        _wait(children, GRACE_SECONDS)
        status = INTERRUPTED
    finally:
        _end(children)
        for reader in readers:  # a daemon of a test may hold the pipe for longer
            reader.join(LAST_LINES_SECONDS)
        sys.stdout.flush()
    return status


def _start(command: Sequence[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def _shown(child: subprocess.Popen[bytes], number: int) -> threading.Thread:
    """A thread that shows the lines of a part."""
    output = child.stdout
    assert output is not None

    def show() -> None:
        with output:
            for line in output:
                sys.stdout.write(f"{number} {line.decode(errors='replace')}")
                sys.stdout.flush()

    reader = threading.Thread(target=show, daemon=True)
    reader.start()
    return reader


def _wait(children: Sequence[subprocess.Popen[bytes]], seconds: float = math.inf) -> int:
    """Until all have ended, one was interrupted, or the time is over."""
    end = time.monotonic() + seconds
    while True:
        states = [child.poll() for child in children]
        if seconds == math.inf and INTERRUPTED in states:
            return INTERRUPTED
        if None not in states or time.monotonic() > end:
            return next((state for state in states if state), 0)
        time.sleep(0.1)


def _end(children: Sequence[subprocess.Popen[bytes]]) -> None:
    """Interrupts those that still run, so that their fixtures end what they started."""
    for child in children:
        if child.poll() is None:
            child.send_signal(signal.SIGINT)
    _wait(children, GRACE_SECONDS)
    for child in children:
        child.kill()
        child.wait()


def main(options: Sequence[str]) -> int:
    """Compiles DeepSpeed's ops for the runs of the first part, and runs all parts."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    pytest = [sys.executable, "-m", "pytest", *options]
    compiled = "from tests.support.ops import compile_ops; compile_ops()"
    return side_by_side(
        [[*pytest, *arguments] for arguments in parts()], [sys.executable, "-c", compiled]
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
