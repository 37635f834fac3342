"""From a text to the facts that it states."""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste import places
from dsdoctor.paste.lines import Line, lines_of
from dsdoctor.paste.readers import OF_ANY_PLACE, READERS
from dsdoctor.paste.statements import Statements


def environment_of(text: str) -> Snapshot | None:
    """The partial snapshot of a text; None if no reader recognizes a part of it."""
    lines = lines_of(text)
    where = places.places(lines)
    if not places.are_mixed(where):
        return _read(lines, lines).snapshot()
    inner = places.only(lines, where, places.CONTAINER, places.UNKNOWN)
    statements = _read(inner, lines)
    statements.add_of_host(_read(places.only(lines, where, places.HOST), ()))
    return statements.snapshot()


def _read(printed: Sequence[Line], written: Sequence[Line]) -> Statements:
    """What the readers find.

    Args:
        printed: lines for readers of what tools print on the machine that they run on.
        written: lines for readers of everything else.
    """
    statements = Statements()
    for reader in READERS:
        statements.reader = reader.name
        reader.read(written if reader in OF_ANY_PLACE else printed, statements)
    return statements
