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
    Signature(
        anchor=("triton", "Triton", "PY_SSIZE_T_CLEAN"),
        pattern=(
            r"Cannot find a working triton installation|PY_SSIZE_T_CLEAN macro must be defined"
            r"|Triton Error \[CUDA\]: (?!out of memory|device kernel image)"
            r"|Triton only support CUDA|is not a supported.{0,20}[Tt]riton version"
        ),
        examples=(
            "RuntimeError: Cannot find a working triton installation. More information on installing Triton can be found at https://github.com/openai/triton",
            "SystemError: PY_SSIZE_T_CLEAN macro must be defined for '#' formats",
            "RuntimeError: Triton Error [CUDA]: invalid argument",
        ),
        not_examples=(
            "A matching Triton is not available, some optimizations will not be enabled",
            "RuntimeError: Triton Error [CUDA]: device kernel image is invalid",
        ),
        weight=58,
    ),
    Signature(
        anchor="() got an unexpected keyword argument",
        pattern=(
            r"\b(?:dot|load|store|jit|autotune|Config|compile"
            r"|trans)\(\) got an unexpected keyword argument '(?:trans_[ab]"
            r"|num_warps|num_stages|allow_tf32|interpret|eviction_policy"
            r"|num_ctas|signature|prune_configs_by)'"
        ),
        examples=(
            "TypeError: dot() got an unexpected keyword argument 'trans_b'",
            "TypeError: compile() got an unexpected keyword argument 'num_warps'",
        ),
        not_examples=("TypeError: load() got an unexpected keyword argument 'path'",),
        weight=60,
    ),
)
