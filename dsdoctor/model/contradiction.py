"""What two parts of a pasted text state differently."""

from __future__ import annotations

from typing import Any

import msgspec

from dsdoctor.model.partial import Source


class Contradiction(msgspec.Struct, frozen=True, kw_only=True):
    """A field that a text states twice, with different values.

    Attributes:
        field: its dotted name, the fact in front (`nvml.driver_version`).
        values: the two values, in the order of their lines.
        places: where they stand.
        used: index of the value that is used if one part is more reliable; None =
            the field counts as unknown.
    """

    field: str
    values: tuple[Any, Any]
    places: tuple[Source, Source]
    used: int | None = None
