"""A faulty row of GPU memory could not be remapped.

## Why it matters
GPUs since Ampere replace faulty memory rows with spares. If that fails, the bank has no spares left,
and programs keep getting the faulty memory.

## What to do
Take the GPU out of service and replace the card. A failed remap meets NVIDIA's criterion for a
replacement.

## References
- https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/row-remapping.html
- nvml.h of CUDA 13.5: nvmlDeviceGetRemappedRows
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("row-remap-failed", id="DSD604", scope=Scope.NODE, since="0.1")


class RemapLimits(Limits, frozen=True, kw_only=True):
    """Tolerated remapped rows.

    Attributes:
        max_rows: remapped for uncorrectable errors, over the life of the card.
    """

    max_rows: float = 512


@check(CONDITION)
def rows_were_replaced(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: RemapLimits
) -> Iterator[Finding]:
    """Judges the failure flag and the number of remapped rows."""
    found = judged(gpus, run, env)
    for gpu in found:
        health = gpu.health
        rows = health.remapped_rows_uncorrected
        if health.remapped_rows_failure:
            what = f"{named(gpu)} could not remap a faulty memory row, but every faulty row should be remapped"
        elif (rows or 0) > limits.max_rows:
            what = (
                f"{named(gpu)} has remapped {rows} memory rows, but a card has spares for "
                f"{limits.max_rows:g}"
            )
        else:
            continue
        yield fail(
            what,
            effect="programs that touch the row fail with a CUDA error (Xid 64)",
            hint="take the GPU out of service and replace the card",
            gpu=gpu.index,
            uuid=gpu.uuid,
            failure=health.remapped_rows_failure,
            rows_uncorrected=rows,
            rows_corrected=health.remapped_rows_corrected,
            max_rows=limits.max_rows,
        )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.remapped_rows_failure,
        "health.remapped_rows",
        "row remaps",
    )
