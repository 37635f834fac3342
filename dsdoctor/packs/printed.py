"""Redirects what code of a pack prints to stderr, line by line, with the pack's name.

It never becomes part of a report, even if a program printed it that the code starts on the main
thread. Lines are limited in number and length, secrets are masked, and control characters removed.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

#: Most lines of one pack that are shown, and longest line, in characters.
MOST_LINES = 20
_LONGEST = 1600


class _State:
    """State that all threads share.

    Attributes:
        lock: for the other three.
        blocks: number of blocks that run now.
        own: the real stdout and stderr, by name.
        lines: lines shown so far, by pack.
    """

    lock = threading.RLock()
    blocks = 0
    own: dict[str, Any] = {}
    lines: Counter[str] = Counter()


class _Current(threading.local):
    """The sink of the block that this thread runs; None outside of blocks."""

    sink: _Sink | None = None


class _Sink:
    """Collects what one block prints into lines and shows them."""

    def __init__(self, pack: str, clean: Callable[[str], str]) -> None:
        self._pack = pack
        self._clean = clean
        self._part = ""

    def write(self, text: object) -> int:
        if not isinstance(text, str):
            raise TypeError(f"write() argument must be str, not {type(text).__name__}")
        ended = text.endswith(("\n", "\r"))
        if _State.lines[self._pack] <= MOST_LINES:
            *lines, last = (self._part + text[: _LONGEST * MOST_LINES]).splitlines() or [""]
            self._part = "" if ended else last[:_LONGEST]
            for line in [*lines, last] if ended else lines:
                self._show(line)
        return len(text)

    def close(self) -> None:
        if self._part:
            self._show(self._part)

    def _show(self, line: str) -> None:
        clean = self._clean(line[:_LONGEST])
        if not clean:
            return
        with _State.lock:
            number = _State.lines[self._pack] = _State.lines[self._pack] + 1
            stream = _State.own.get("stderr")
        name = self._clean(self._pack)
        if stream is None or number > MOST_LINES + 1:
            return
        said = f"prints: {clean}" if number <= MOST_LINES else "prints more, which is left out"
        with contextlib.suppress(OSError, ValueError):  # stderr may be closed
            stream.write(f"dsdoctor: pack `{name}` {said}\n")


class _Bytes:
    """`sys.stdout.buffer` inside a block."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        self._sink.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Does nothing: nothing is buffered."""


class _Stream:
    """`sys.stdout` or `sys.stderr` while blocks run; other threads use the stream itself."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        sink = _current.sink
        written: int = (sink or self._stream).write(text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Does nothing: a block must not close the stream."""

    @property
    def buffer(self) -> Any:
        sink = _current.sink
        return self._stream.buffer if sink is None else _Bytes(sink)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_current = _Current()


@contextlib.contextmanager
def shown(pack: str, clean: Callable[[str], str]) -> Iterator[None]:
    """Shows what the block prints as lines of a pack.

    Args:
        pack: its name.
        clean: turns a text into one line that is safe for a terminal.
    """
    before, sink = _current.sink, _Sink(pack, clean)
    _enter()
    _current.sink = sink
    try:
        with _children_print_to_stderr():
            yield
    finally:
        _current.sink = before
        sink.close()
        _leave()


def _enter() -> None:
    with _State.lock:
        _State.blocks += 1
        for name in ("stdout", "stderr"):
            stream = getattr(sys, name)
            if stream is not None and not isinstance(stream, _Stream):
                _State.own[name] = stream
                setattr(sys, name, _Stream(stream))


def _leave() -> None:
    """Restores the streams, even if the block has replaced them."""
    with _State.lock:
        _State.blocks -= 1
        for name, stream in _State.own.items():
            setattr(sys, name, _Stream(stream) if _State.blocks else stream)


@contextlib.contextmanager
def _children_print_to_stderr() -> Iterator[None]:
    """Lets a program that the block starts inherit stderr as its stdout.

    Only on the main thread, because a block on another thread may never end.
    """
    kept = None
    if threading.current_thread() is threading.main_thread():
        with contextlib.suppress(OSError, ValueError):
            if "stdout" in _State.own:
                _State.own["stdout"].flush()
            kept = os.dup(1)
            os.dup2(2, 1)
    try:
        yield
    finally:
        if kept is not None:
            os.dup2(kept, 1)
            os.close(kept)
