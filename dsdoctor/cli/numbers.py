"""Numbers of options."""

from __future__ import annotations

import math
from typing import Any

import click


class Finite(click.FloatRange):
    """A range that takes neither `nan` nor `inf`."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """See click.FloatRange."""
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
