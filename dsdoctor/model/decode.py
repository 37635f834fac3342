"""Reads what was written outside this process: one decoder, with limits.

Snapshots, recordings of nodes, journals, launch plans and reports of other runs may be broken or
made to do harm: a number of 6,000 digits, JSON nested 100,000 deep, a few MB that inflate to GB, a
pipe that no process writes to. Each limit is far beyond what dsdoctor itself writes; what exceeds
one is an error of one line.
"""

from __future__ import annotations

import zlib
from typing import Any, TypeVar

import msgspec

#: Bytes of one document, compressed or not. A node's snapshot has about 0.1 MB.
SIZE = 64 << 20
#: Levels of lists and objects within each other. A snapshot has about 10, a DeepSpeed config 5.
DEPTH = 64
#: Largest absolute value of a number: beyond it floats of clocks and sizes are garbage.
LARGEST = 1 << 64

T = TypeVar("T")


class DecodeError(ValueError):
    """Data is not JSON, or exceeds a limit; its text says which, for the end of a sentence."""


def bounded(data: bytes, size: int = SIZE) -> bytes:
    """Returns the data unchanged.

    Raises:
        DecodeError: it is longer than `size`.
    """
    if len(data) > size:
        raise DecodeError(f"it is larger than {size >> 20} MiB")
    return data


def inflate(data: bytes, *, size: int = SIZE) -> bytes:
    """Decompresses what zlib has compressed.

    Raises:
        DecodeError: the data is broken or cut off, or its result is longer than `size`.
    """
    unpacker = zlib.decompressobj()
    try:
        found = unpacker.decompress(data, size + 1)
    except zlib.error as error:
        raise DecodeError(f"its compressed data is broken ({error})") from None
    if not unpacker.eof and len(found) <= size:
        raise DecodeError("its compressed data is cut off")
    return bounded(found, size)


def json(data: bytes | str, *, size: int = SIZE) -> Any:
    """What a JSON document holds.

    Raises:
        DecodeError: it is not JSON, or exceeds a limit.
    """
    if len(data) > size:
        raise DecodeError(f"it is larger than {size >> 20} MiB")
    if not data.strip():
        raise DecodeError("it is empty")
    try:
        value = msgspec.json.decode(data)
    except RecursionError:
        raise DecodeError(_too_deep()) from None
    except (msgspec.MsgspecError, UnicodeError, ValueError) as error:
        raise DecodeError(str(error)) from None
    check(value)
    return value


def typed(data: bytes | str, kind: type[T], *, strict: bool = True) -> T:
    """A JSON document as a struct.

    Raises:
        DecodeError: it is not JSON, exceeds a limit, or does not fit.
    """
    return convert(json(data), kind, strict=strict)


def convert(value: Any, kind: type[T], *, strict: bool = True) -> T:
    """A decoded document as a struct.

    Raises:
        DecodeError: it does not fit.
    """
    try:
        return msgspec.convert(value, kind, strict=strict)
    except (msgspec.MsgspecError, RecursionError, ValueError, OverflowError) as error:
        raise DecodeError(str(error)) from None


def _too_deep() -> str:
    return f"it is nested more than {DEPTH} levels deep"


def check(value: Any) -> None:
    """Checks depth and numbers of a decoded document.

    Raises:
        DecodeError: it exceeds a limit.
    """
    level: list[Any] = [value]
    for _ in range(DEPTH + 1):
        inner: list[Any] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
            elif isinstance(item, (int, float)) and not _is_usable(item):
                raise DecodeError("it contains a number that is too large")
        if not inner:
            return
        level = inner
    raise DecodeError(_too_deep())


def _is_usable(number: float) -> bool:
    return -LARGEST <= number <= LARGEST  # NaN is not
