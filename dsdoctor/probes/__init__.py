"""Probes: functions that read facts. One module per kind of fact; they never judge."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterable

from dsdoctor.api import Probe


def builtin(modules: Iterable[str] = ()) -> tuple[Probe, ...]:
    """The probes of this package's modules, which are imported only here.

    Args:
        modules: names of modules; empty = all.
    """
    found: dict[int, Probe] = {}
    names = tuple(modules) or sorted(
        entry.name for entry in pkgutil.iter_modules(__path__) if not entry.ispkg
    )
    for name in names:
        module = importlib.import_module(f"{__name__}.{name}")
        for value in vars(module).values():
            if isinstance(value, Probe):
                found[id(value)] = value
    return tuple(found.values())
