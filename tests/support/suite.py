"""Runs the whole suite in parts side by side: `python -m tests.support.suite PYTEST_OPTION…`.

Tests of launchers and hooks wait most of the time and others compute, so each part has some of both.
What the first part prints is shown as it comes, and that of the others when they have ended. The
exit status is that of the first part that failed, or 2 after Ctrl-C and if tests cannot be collected.
"""

from __future__ import annotations

import contextlib
import math
import signal
import subprocess
import sys
import tempfile
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


def parts() -> list[list[str]]:
    """What pytest is given for each part."""
    listed = [[f"{TESTS}/{name}" for name in names] for names in LISTED]
    return [*listed, [TESTS, *(f"--ignore={path}" for names in listed for path in names)]]


def side_by_side(commands: Sequence[Sequence[str]], before: Sequence[str] = ()) -> int:
    """Runs commands at once and shows what they print.

    Args:
        commands: each with its arguments; what the first one prints is shown at once.
        before: a command that has to succeed before the first one starts, while the others run.

    Returns:
        INTERRUPTED if one was, which ends the others; else the first status that is not 0, or 0.
    """
    with contextlib.ExitStack() as stack:
        said = [stack.enter_context(tempfile.TemporaryFile()) for _ in commands[1:]]
        children = [
            subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
            for command, output in zip(commands[1:], said, strict=True)
        ]
        try:
            status = subprocess.run(before, check=False).returncode if before else 0
            if status == 0:
                children.insert(0, subprocess.Popen(commands[0]))
                status = _wait(children)
        except KeyboardInterrupt:  # a terminal sends it to all of them
            _wait(children, GRACE_SECONDS)
            status = INTERRUPTED
        finally:
            _end(children)
            for output in said:
                output.seek(0)
                sys.stdout.write(output.read().decode(errors="replace"))
            sys.stdout.flush()
    return status


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
