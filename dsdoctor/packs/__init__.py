"""Packs: where they are found, what their modules define, and the units of one run.

The names of `dsdoctor.packs.loading` are also names of this package, imported on first use: whether
packs are installed can be found out without it (`dsdoctor.packs.places`).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dsdoctor.packs.loading import *  # noqa: F403  # for type checkers only


def __getattr__(name: str) -> Any:
    """A name of `dsdoctor.packs.loading`."""
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module("dsdoctor.packs.loading"), name)
