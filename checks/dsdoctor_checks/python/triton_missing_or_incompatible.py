"""Triton is absent or of a wrong version.

## Why it matters
Each torch release works with one triton; another one fails at import or at the first compiled
kernel.

## What to do
Install the triton of this torch (`pip install -U triton`), and upgrade what imports it.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition(
    "triton-missing-or-incompatible", id="DSD952", scope=Scope.USER_ENV, since="0.1"
)

HINT = "install the triton of this torch (`pip install -U triton`), and upgrade what imports it"

SIGNATURES = (
    Signature(
        anchor="triton",
        pattern=(
            r"No module named '?triton[\w.]*'?|cannot import name '\w+' from 'triton[\w.]*'"
            r"|module 'triton[\w.]*' has no attribute|triton\S*\.(?:CompilationError"
            r"|compiler\.errors)"
        ),
        examples=(
            "ModuleNotFoundError: No module named 'triton.ops'",
            "ModuleNotFoundError: No module named 'triton'",
        ),
        not_examples=("[WARNING] using untested triton version (2.1.0)",),
        weight=64,
        not_near=("A matching Triton is not available",),
    ),
)
