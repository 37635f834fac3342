"""What people paste about a machine: from text to the facts that it states, and no others.

A reader knows one format (`collect_env`, `ds_report`, `nvidia-smi`, …). It finds its own part of a
text, of any version of the tool, and states fields of facts with their lines. What two parts of a
text state differently counts as unknown, and the snapshot says so. Pure: text in, snapshot out.
"""

from __future__ import annotations

from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste.lines import lines_of
from dsdoctor.paste.readers import READERS, TOOLS
from dsdoctor.paste.statements import Statements
from dsdoctor.paste_words import may_state

__all__ = ["READERS", "TOOLS", "environment_of", "may_state"]


def environment_of(text: str) -> Snapshot | None:
    """The partial snapshot of a text; None where no reader recognizes a part of it."""
    lines = lines_of(text)
    statements = Statements()
    for reader in READERS:
        statements.reader = reader.name
        reader.read(lines, statements)
    return statements.snapshot()
