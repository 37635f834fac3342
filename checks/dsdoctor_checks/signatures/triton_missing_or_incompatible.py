"""How `triton-missing-or-incompatible` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "triton-missing-or-incompatible"
TITLE = "triton is absent or of a wrong version"
HINT = "install the triton of this torch (`pip install -U triton`), and upgrade what imports it"
FIXES: tuple[str, ...] = ()

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
