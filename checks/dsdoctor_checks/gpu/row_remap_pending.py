"""A row of GPU memory is pending remapping.

## Why it matters
The driver no longer hands the faulty row to new programs; a spare row replaces it at the next reset.
NVIDIA states that other programs keep their accuracy and speed until then.

## What to do
Reset the GPU or reboot the node at the next opportunity.

## References
- https://docs.nvidia.com/deploy/a100-gpu-mem-error-mgmt/row-remapping.html
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    check,
    warn,
)

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("row-remap-pending", id="DSD605", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def no_row_is_pending(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges the pending flag."""
    found = judged(gpus, run, env)
    for gpu in found:
        if gpu.health.remapped_rows_pending:
            yield warn(
                f"{named(gpu)} has a memory row pending remapping, but none is expected",
                effect="the GPU has slightly less memory until the next reset",
                hint=f"run `nvidia-smi --gpu-reset -i {selector(gpu)}` as root, or reboot",
                gpu=gpu.index,
                uuid=gpu.uuid,
                rows_uncorrected=gpu.health.remapped_rows_uncorrected,
            )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.remapped_rows_pending,
        "health.remapped_rows",
        "row remaps",
    )


HINT = "run `nvidia-smi --gpu-reset -i N` as root for that GPU, or reboot"

SIGNATURES = (
    Signature(
        pattern=r"^ +Pending {9,}: Yes\b",
        source="nvidia-smi -q of drivers 450 to 590",
        requires=("Remapped Rows",),
        examples=("        Pending                           : Yes",),
        not_examples=("        ECC Pending                       : Yes",),
        level=Level.LIKELY,
    ),
)
