"""Reads pickles of plain data within limits; no code from a file ever runs.

The opcodes are checked before anything is built: a few bytes can request a table of gigabytes
(`LONG_BINPUT`), or code.
Source: `pickletools` of Python 3.14, whose opcodes of earlier protocols have not changed.
"""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn

#: Most opcodes, and so values, of one file. A dump of 20,000 collectives has 1.8 million.
MOST_ITEMS = 4_000_000
#: Opcodes of plain data with the size of their argument in bytes: `PROTO`, `FRAME`, marks,
#: constants, numbers, empty containers, tuples, appending, setting, and the memo.
_FIXED = {
    **dict.fromkeys(b".(N)]}tlaesud\x85\x86\x87\x88\x89\x94", 0),
    **dict.fromkeys(b"\x80Kqh", 1),
    ord("M"): 2,
    **dict.fromkeys(b"Jrj", 4),
    **dict.fromkeys(b"G\x95", 8),
}
#: Opcodes whose argument begins with its length, with the size of that length in bytes.
_SIZED = {**dict.fromkeys(b"\x8a\x8cUC", 1), **dict.fromkeys(b"XTB", 4), ord("\x8d"): 8}
#: Opcodes that memoize a value; every pickler uses the next free number.
_KEEPS = frozenset(b"qr\x94")


class _PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, tuples, strings and numbers, and nothing that has a name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuses every class and function."""
        raise pickle.UnpicklingError(f"a dump contains only plain data, not `{module}.{name}`")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuses references to data elsewhere."""
        raise pickle.UnpicklingError(f"a dump contains only plain data, not a reference to {pid!r}")


def _judge(data: bytes) -> None:
    at = kept = 0
    for _ in range(MOST_ITEMS):
        code = data[at] if at < len(data) else -1
        at += 1
        if (size := _FIXED.get(code)) is None:
            if (width := _SIZED.get(code)) is None:
                raise pickle.UnpicklingError(f"opcode {code} at byte {at - 1} is not plain data")
            size = width + int.from_bytes(data[at : at + width], "little")
        elif code in _KEEPS:
            if int.from_bytes(data[at : at + size], "little") > kept:
                raise pickle.UnpicklingError("a value is kept under a number that is too large")
            kept += 1
        at += size
        if code == _STOP:
            return
    raise pickle.UnpicklingError(f"more than {MOST_ITEMS} values")


_STOP = ord(".")


def loads(data: bytes) -> Any:
    """What a pickle contains.

    Raises:
        pickle.UnpicklingError: it is not plain data, or exceeds a limit. A malicious file may raise
            other exceptions.
    """
    _judge(data)
    return _PlainUnpickler(io.BytesIO(data)).load()
