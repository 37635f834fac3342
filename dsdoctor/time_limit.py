"""Ends a block of code at a deadline, with SIGALRM."""

from __future__ import annotations

import contextlib
import signal
import threading
import time
from collections.abc import Iterator

#: Time for code that begins after its deadline, in seconds.
_LEAST_SECONDS = 0.01


class OutOfTimeError(BaseException):
    """The deadline has passed; not an `Exception`, so that the block itself does not catch it."""


class _Alarm:
    """Whether a block is running that the alarm should end."""

    armed = False


def _ring(_number: int, _frame: object) -> None:
    if _Alarm.armed:
        _Alarm.armed = False
        raise OutOfTimeError


@contextlib.contextmanager
def ends_by(deadline: float) -> Iterator[None]:
    """Ends the block at a deadline, which is a time of `time.monotonic()`.

    It needs the process's alarm: the main thread, a POSIX system, and no other user of SIGALRM.
    Otherwise the block is not ended.

    Raises:
        OutOfTimeError: the deadline has passed.
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
