"""Ends code that takes too long, from outside of it."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

#: What is left to code that begins after its deadline, in seconds.
_LEAST_SECONDS = 0.01


class OutOfTimeError(BaseException):
    """The deadline is over; no `except Exception` of the code that it ends catches it."""


class _Alarm:
    """Whether the alarm means the code that runs now."""

    armed = False


def _ring(_number: int, _frame: object) -> None:
    if _Alarm.armed:
        _Alarm.armed = False
        raise OutOfTimeError


@contextlib.contextmanager
def ends_by(deadline: float) -> Iterator[None]:
    """Ends the block when a deadline by `time.monotonic()` is over.

    It needs the process's alarm: the main thread, a POSIX system, and nobody else who uses it.
    Where it cannot be had, the block is not ended.

    Raises:
        OutOfTimeError: the deadline is over.
    """
    if threading.current_thread() is not threading.main_thread() or not _is_free():
        yield
        return
    before = signal.signal(signal.SIGALRM, _ring)
    try:
        _Alarm.armed = True
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST_SECONDS, deadline - time.monotonic()))
        yield
    finally:
        _Alarm.armed = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _is_free() -> bool:
    if not hasattr(signal, "setitimer"):
        return False
    ours = (signal.SIG_DFL, signal.SIG_IGN, _ring)
    return signal.getsignal(signal.SIGALRM) in ours and not signal.getitimer(signal.ITIMER_REAL)[0]
