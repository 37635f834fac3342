"""How `open-files-limit` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "open-files-limit"
TITLE = "the limit of open files is exhausted"
HINT = "raise it (`ulimit -n 65536`), or use the `file_system` sharing strategy"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("Too many open files", "received 0 items of ancdata"),
        pattern=r"Too many open files|received 0 items of ancdata",
        examples=("OSError: [Errno 24] Too many open files",),
        not_examples=("many open files",),
        weight=68,
    ),
)
