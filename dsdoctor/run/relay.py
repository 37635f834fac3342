"""Copies the output of a job, byte for byte, to where it would go without dsdoctor."""

from __future__ import annotations

import contextlib
import errno
import os
import re
import selectors
from collections.abc import Callable

CHUNK = 1 << 18
#: How much of the last output is needed to see whether its line has ended.
_TAIL = 64
#: A disk is full, a quota is used up, or a file may not be larger: a job told so may die of it.
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
#: Sequences that do not move the cursor, such as colors: they may follow the end of a line.
_NO_TEXT = re.compile(rb"\x1b\[[0-9;?]*[hlm]")


class Relay:
    """The job's streams: read, forwarded and stored.

    Attributes:
        open: streams of the job that have not ended.
        unwritten: why output could not be forwarded, such as a full disk; the job goes on, and its
            output is stored.
    """

    def __init__(self, keep: Callable[[bytes], None]) -> None:
        self._keep = keep
        self._selector = selectors.DefaultSelector()
        self._targets: dict[int, int] = {}
        self._own: set[int] = set()
        self._wakeups: set[int] = set()
        self._typed: Callable[[bytes], None] = lambda _: None
        self._last: tuple[int, bytes] | None = None
        self._lost: set[int] = set()
        self.unwritten: OSError | None = None

    def add(self, source: int, target: int) -> None:
        """Copies `source` (which the relay then owns) to `target`."""
        self._targets[source] = target
        self._own.add(source)
        os.set_blocking(source, False)
        self._selector.register(source, selectors.EVENT_READ)

    def add_input(self, source: int, target: int, typed: Callable[[bytes], None]) -> None:
        """Forwards typed input and reports it; the caller still owns both descriptors."""
        self._targets[source] = target
        self._typed = typed
        self._selector.register(source, selectors.EVENT_READ)

    def wake_on(self, source: int) -> None:
        """Makes `copy` return when this can be read; the caller reads it."""
        self._wakeups.add(source)
        self._selector.register(source, selectors.EVENT_READ)

    def forget(self, source: int) -> None:
        """Stops watching a descriptor."""
        with contextlib.suppress(KeyError, ValueError):
            self._selector.unregister(source)
        self._targets.pop(source, None)
        self._wakeups.discard(source)
        if source in self._own:
            self._own.discard(source)
            os.close(source)

    @property
    def open(self) -> bool:
        """Whether a stream of the job is still open."""
        return bool(self._own)

    def copy(self, seconds: float) -> set[int]:
        """Copies for at most this long; returns the wake-up descriptors that can be read."""
        woken: set[int] = set()
        for key, _ in self._selector.select(seconds):
            source = key.fd
            if source in self._wakeups:
                woken.add(source)
            else:
                self._pass_on(source)
        return woken

    def _pass_on(self, source: int) -> None:
        try:
            data = os.read(source, CHUNK)
        except BlockingIOError:
            return
        except OSError:  # a pseudo-terminal that its last user has closed
            data = b""
        if not data:
            self.forget(source)
            return
        if source in self._own:
            self._keep(data)
        else:
            self._typed(data)
        if source in self._lost:
            return
        try:
            _write(self._targets[source], data)
            if source in self._own:
                self._last = (self._targets[source], data[-_TAIL:])
        except OSError as error:
            if source in self._own and error.errno in _FULL:
                self._lost.add(source)
                self.unwritten = error
                return
            # the reader has closed its pipe: the job sees that, as it would without dsdoctor
            self.forget(source)

    def end_line(self, number: int) -> None:
        """Ends the job's last line if it is incomplete and a descriptor writes to the same file.

        Args:
            number: of the descriptor.
        """
        if self._last is None:
            return
        (target, tail), self._last = self._last, None
        if _NO_TEXT.sub(b"", tail).endswith(b"\n"):
            return
        with contextlib.suppress(OSError):
            if os.path.sameopenfile(target, number):
                _write(number, b"\r\n" if os.isatty(number) else b"\n")

    def close(self) -> None:
        """Closes everything."""
        for source in list(self._own):
            self.forget(source)
        self._selector.close()


def _write(target: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        try:
            rest = rest[os.write(target, rest) :]
        except BlockingIOError:  # another process made our output non-blocking
            with selectors.DefaultSelector() as selector:
                selector.register(target, selectors.EVENT_WRITE)
                selector.select(1.0)
