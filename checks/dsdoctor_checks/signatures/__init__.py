"""Log signatures, one module per condition."""

from __future__ import annotations

import importlib
import pkgutil

from dsdoctor.api import Signature

Row = tuple[str, str, str, tuple[str, ...], Signature]


def all_signatures() -> list[Row]:
    """Every signature with the name, title, hint and fixes of its condition."""
    rows: list[Row] = []
    for module in pkgutil.iter_modules(__path__):
        unit = importlib.import_module(f"{__name__}.{module.name}")
        rows += [
            (unit.CONDITION_NAME, unit.TITLE, unit.HINT, tuple(unit.FIXES), signature)
            for signature in unit.SIGNATURES
        ]
    return rows
