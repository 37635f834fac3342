"""Reads files from the command line, with limits of size and time, whatever kind they are."""

from __future__ import annotations

import os
import select
import stat
import sys
import time
from pathlib import Path

from dsdoctor import safe_path
from dsdoctor.model.decode import SIZE, DecodeError, bounded

#: Seconds to wait for a pipe that is passed as a file, as with `<(dsdoctor snapshot)`.
PIPE_SECONDS = 60.0
#: Seconds to wait for somebody to open a pipe for writing; the shell of `<(…)` has done so.
WRITER_SECONDS = 2.0


def read(path: str | Path, *, size: int = SIZE) -> bytes:
    """A file's bytes; `-` is standard input.

    Raises:
        DecodeError, OSError: as `read_file`.
    """
    if str(path) == "-":
        data = sys.stdin.buffer.read(size + 1)
        return bounded(data, size)
    return read_file(path, size=size)


def read_text(path: str | Path, *, size: int = SIZE) -> str:
    """A file's text; bytes that are not UTF-8 are replaced.

    Raises:
        DecodeError, OSError: as `read_file`; `why` turns both into text.
    """
    return read_file(path, size=size).decode("utf-8", "replace")


def why(error: DecodeError | OSError) -> str:
    """Why a file cannot be read, for the end of a sentence.

    >>> why(DecodeError("it is a device")), why(FileNotFoundError(2, "No such file"))
    ('it is a device', 'No such file')
    """
    return (isinstance(error, OSError) and error.strerror) or str(error)


def read_file(path: str | Path, *, size: int = SIZE) -> bytes:
    """A file's bytes; here `-` is an ordinary name.

    A device is refused; a pipe is read for PIPE_SECONDS at most, and refused after WRITER_SECONDS
    if nobody writes to it. For root, another account's link
    to a private file is refused: an error message would quote it.

    Raises:
        DecodeError: it is too large, is not a file, or is a pipe that does not end.
        OSError: it cannot be read.
    """
    # opening a pipe without a writer must not block
    handle = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        mode = os.fstat(handle).st_mode
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(21, "Is a directory", str(path))
        if stat.S_ISFIFO(mode):
            return bounded(_pipe(handle, size), size)
        if not stat.S_ISREG(mode):
            raise DecodeError("it is a device or a socket, not a file")
        if safe_path.is_root():
            _refuse_private(str(path), handle)
        with os.fdopen(os.dup(handle), "rb") as file:
            return bounded(file.read(size + 1), size)
    finally:
        os.close(handle)


def _refuse_private(path: str, handle: int) -> None:
    """Refuses another account's link to a private file, whose content root could quote."""
    from dsdoctor.host.account import may_quote  # noqa: PLC0415  # only root needs it

    try:
        may_quote(path, os.fstat(handle))
    except safe_path.UnsafePathError as error:
        raise DecodeError(f"root does not read it: {error}") from None


def _pipe(handle: int, size: int) -> bytes:
    """Reads a pipe until its writers have closed it."""
    start = time.monotonic()
    data = bytearray()
    opened = False
    while len(data) <= size:
        waited = time.monotonic() - start
        if waited >= PIPE_SECONDS:
            raise DecodeError(f"it is a pipe that did not end within {PIPE_SECONDS:g} s")
        try:
            piece = os.read(handle, 1 << 16)
        except BlockingIOError:  # a writer that has not written yet
            opened = True
            select.select([handle], [], [], min(PIPE_SECONDS - waited, 0.5))
            continue
        if piece:
            opened = True
            data += piece
        elif opened:
            break
        elif waited >= WRITER_SECONDS:
            raise DecodeError("it is a pipe that nobody writes to; expected a file")
        else:
            time.sleep(0.05)  # its writer may be about to open it
    return bytes(data)
