"""Reads pickles of plain data, so that no code of a file ever runs."""

from __future__ import annotations

import io
import pickle
from typing import Any, NoReturn


class _PlainUnpickler(pickle.Unpickler):
    """Builds dicts, lists, tuples, strings and numbers, and nothing that has a name."""

    def find_class(self, module: str, name: str) -> NoReturn:
        """Refuses every class and function."""
        raise pickle.UnpicklingError(f"a dump holds plain data, not `{module}.{name}`")

    def persistent_load(self, pid: Any) -> NoReturn:
        """Refuses references to data elsewhere."""
        raise pickle.UnpicklingError(f"a dump holds plain data, not a reference to {pid!r}")


def loads(data: bytes) -> Any:
    """What a pickle holds.

    Raises:
        pickle.UnpicklingError: it asks for anything that has a name. A file that means harm may
            raise other exceptions.
    """
    return _PlainUnpickler(io.BytesIO(data)).load()
