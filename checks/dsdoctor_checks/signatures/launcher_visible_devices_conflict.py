"""How `launcher-visible-devices-conflict` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "launcher-visible-devices-conflict"
TITLE = "the DeepSpeed launcher and CUDA_VISIBLE_DEVICES or --include disagree"
HINT = "unset `CUDA_VISIBLE_DEVICES` and choose GPUs with `--include localhost:0,2`"
FIXES: tuple[str, ...] = ()

SIGNATURES = (
    Signature(
        anchor=("No slot '", "invalid literal for int() with base 10"),
        pattern=(
            r"No slot '\d+' specified on host 'localhost|invalid literal for int\(\) with base 10: ''"
        ),
        examples=("ValueError: No slot '2' specified on host 'localhost'",),
        not_examples=("invalid literal for int() with base 10: 'x'",),
        weight=66,
        masks=("hostfile-or-ssh-problem",),
    ),
)
