"""Sends signals to the intended process, never to another that has reused its pid."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable

POSIX = os.name == "posix"


def signal_group(pid: int, number: int) -> None:
    """Signals the group of a child that has not been reaped, so that its pid is still in use.

    A group that has ended, or that this account may not signal, is ignored.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if POSIX:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def signal_one(pid: int, number: int, is_meant: Callable[[int], bool]) -> bool:
    """Sends a signal to one process, never to another that has reused its pid.

    A pidfd is opened first. If the pid is reused afterwards, `is_meant` may look at either of the
    two processes, but the signal reaches only the one that the pidfd refers to. Without pidfds
    (Linux before 5.3, macOS, a seccomp filter), the pid is used.

    Args:
        pid: the process.
        number: the signal.
        is_meant: whether `/proc` shows the intended process; not called on systems without `/proc`.

    Returns:
        Whether it was sent.
    """
    if pid <= 0:  # a group, or every process
        return False
    handle: int | None = None
    try:
        handle = os.pidfd_open(pid)
        sends = functools.partial(signal.pidfd_send_signal, handle, number)
    except ProcessLookupError:
        return False
    except (OSError, AttributeError, OverflowError):
        sends = functools.partial(os.kill, pid, number)
    try:
        if sys.platform.startswith("linux") and not is_meant(pid):
            return False
        sends()
    except (OSError, OverflowError):
        return False
    finally:
        if handle is not None:
            os.close(handle)
    return True
