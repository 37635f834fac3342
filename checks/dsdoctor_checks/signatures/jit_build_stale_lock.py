"""How `jit-build-stale-lock` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-stale-lock"
TITLE = "a leftover lock or stale cache of the extension build blocks the run"
HINT = "remove `~/.cache/torch_extensions` (or the named `lock` file) once no build is running"
FIXES: tuple[str, ...] = ("remove-stale-lock",)

SIGNATURES = (
    Signature(
        anchor=("baton.wait()", "file_baton.py"),
        pattern=(r"baton\.wait\(\)|file_baton\.py\S* line \d+, in wait|file_baton\.py\x22, line"),
        examples=("    baton.wait()",),
        not_examples=("    baton.release()",),
        weight=60,
    ),
    Signature(
        anchor=("as PyTorch extensions root", "real_accelerator.py"),
        pattern=r"as PyTorch extensions root",
        examples=("Using /c/torch_extensions/py310_cu118 as PyTorch extensions root...",),
        not_examples=("Setting ds_accelerator to cuda",),
        weight=45,
        final=True,
    ),
)
