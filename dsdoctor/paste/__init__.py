"""What people paste about a machine: from text to the facts that it states, and no others.

A reader knows one format (`collect_env`, `ds_report`, `nvidia-smi`, …). It finds its own part of a
text, of any version of the tool, and states fields of facts with their lines. What two parts of a
text state differently is not known: the snapshot says so. Pure: text in, snapshot out.
"""

from __future__ import annotations

import re

from dsdoctor.model.snapshot import Snapshot
from dsdoctor.paste.lines import lines_of
from dsdoctor.paste.readers import READERS
from dsdoctor.paste.statements import Statements

__all__ = ["READERS", "environment_of", "may_state"]

#: Words of which a text has at least one if a reader recognizes a part of it.
_WORDS = re.compile(
    r"(?i)PyTorch version|NVIDIA-SMI|Failed to initialize NVML|NVSMI LOG|DeepSpeed C\+\+/CUDA ext"
    r"|DeepSpeed general env|\(UUID: |\bGPU0\s|transformers|accelerate|llama-?factory"
    r"|Cuda compilation tools|NVIDIA Corporation|Package\s+Version|\w=="
)


def may_state(text: str) -> bool:
    """Whether a text is worth reading line by line; a log of a run usually is not."""
    return _WORDS.search(text) is not None


def environment_of(text: str) -> Snapshot | None:
    """The partial snapshot of a text; None where no reader recognizes a part of it."""
    lines = lines_of(text)
    statements = Statements()
    for reader in READERS:
        statements.reader = reader.name
        reader.read(lines, statements)
    return statements.snapshot()
