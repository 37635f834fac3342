"""How `torch-import-broken` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "torch-import-broken"
TITLE = "torch itself cannot be imported"
HINT = "reinstall torch: `python -m pip install --force-reinstall torch`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("file too short", "invalid ELF header"),
        pattern=r"torch/lib/\S+: (?:file too short|invalid ELF header)",
        examples=("ImportError: /x/torch/lib/libc10.so: file too short",),
        not_examples=("file too short",),
        weight=70,
    ),
)
