"""What code of a pack prints: shown on stderr, one bounded line at a time, with the pack's name.

It is never part of a report, not even where it comes from a program that the code starts on the
main thread. Secrets are masked, and nothing in it steers a terminal.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

#: Lines of one pack that are shown, and characters that are kept of one.
MOST_LINES = 20
_LONGEST = 1600


class _State:
    """What is the same for all threads.

    Attributes:
        lock: for the other two.
        blocks: that run now.
        own: stdout and stderr without the blocks, by name.
        lines: shown so far, by pack.
    """

    lock = threading.RLock()
    blocks = 0
    own: dict[str, Any] = {}
    lines: Counter[str] = Counter()


class _Block(threading.local):
    """The sink of the block that a thread is in."""

    sink: _Sink | None = None


class _Sink:
    """Lines of one block."""

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
        with contextlib.suppress(OSError, ValueError):  # a closed stderr is nobody's fault
            stream.write(f"dsdoctor: pack `{name}` {said}\n")


class _Bytes:
    """`sys.stdout.buffer` of a block."""

    def __init__(self, sink: _Sink) -> None:
        self._sink = sink

    def write(self, data: Any) -> int:
        self._sink.write(bytes(data).decode("utf-8", "replace"))
        return len(data)

    def flush(self) -> None:
        """Nothing is held back."""


class _Stream:
    """`sys.stdout` or `sys.stderr` while blocks run; other threads use the stream itself."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        sink = _block.sink
        written: int = (sink or self._stream).write(text)
        return written

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def close(self) -> None:
        """Not the block's to close."""

    @property
    def buffer(self) -> Any:
        sink = _block.sink
        return self._stream.buffer if sink is None else _Bytes(sink)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


_block = _Block()


@contextlib.contextmanager
def shown(pack: str, clean: Callable[[str], str]) -> Iterator[None]:
    """Shows what the block prints as lines of a pack.

    Args:
        pack: its name.
        clean: makes one harmless line of a text.
    """
    before, sink = _block.sink, _Sink(pack, clean)
    _enter()
    _block.sink = sink
    try:
        with _children_print_to_stderr():
            yield
    finally:
        _block.sink = before
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
    """What the block has put in place of a stream is not used for a report."""
    with _State.lock:
        _State.blocks -= 1
        for name, stream in _State.own.items():
            setattr(sys, name, _Stream(stream) if _State.blocks else stream)


@contextlib.contextmanager
def _children_print_to_stderr() -> Iterator[None]:
    """A program that the block starts inherits stderr as its stdout.

    On the main thread alone: a block of another thread may never end.
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
