"""Probes: functions that read facts. One module for each kind of fact; they never judge."""

from __future__ import annotations

import importlib
import pkgutil

from dsdoctor.api import Probe


def builtin() -> tuple[Probe, ...]:
    """All probes of this package's modules, which are imported here and not before."""
    found: dict[int, Probe] = {}
    for entry in sorted(pkgutil.iter_modules(__path__), key=lambda entry: entry.name):
        if entry.ispkg:
            continue
        module = importlib.import_module(f"{__name__}.{entry.name}")
        for value in vars(module).values():
            if isinstance(value, Probe):
                found[id(value)] = value
    return tuple(found.values())
