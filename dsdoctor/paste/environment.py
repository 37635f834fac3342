"""From a text to the facts that it states."""

from __future__ import annotations

from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste.lines import lines_of
from dsdoctor.paste.readers import READERS
from dsdoctor.paste.statements import Statements


def environment_of(text: str) -> Snapshot | None:
    """The partial snapshot of a text; None if no reader recognizes a part of it."""
    lines = lines_of(text)
    statements = Statements()
    for reader in READERS:
        statements.reader = reader.name
        reader.read(lines, statements)
    return statements.snapshot()
