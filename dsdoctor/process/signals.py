"""Signals that reach the process that is meant, and no other that has its number by now."""

from __future__ import annotations

import contextlib
import functools
import os
import signal
import sys
from collections.abc import Callable

POSIX = os.name == "posix"


def signal_group(pid: int, number: int) -> None:
    """Signals the group of a child that has not been waited for: its number is still its own.

    A group that is gone, or that is not ours to signal, is left.
    """
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if POSIX:
            os.killpg(pid, number)
        else:
            os.kill(pid, number)


def signal_one(pid: int, number: int, is_meant: Callable[[int], bool]) -> bool:
    """Sends a signal to one process, never to another that has its number by now.

    The descriptor is opened first. If the number passes on to another process afterwards,
    `is_meant` may look at either of the two, but the signal reaches only the one that the
    descriptor names. Without descriptors of processes (Linux before 5.3, macOS, a seccomp filter),
    the number is used.

    Args:
        pid: its number.
        number: the signal.
        is_meant: looks in `/proc` at what has the number now; not asked where there is no `/proc`.

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
