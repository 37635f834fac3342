"""A row of GPU memory waits for the next reset to be replaced.

## Why it matters
The driver has taken the faulty row out of use for new programs already; the spare row takes its
place at the next reset. NVIDIA states that other programs keep their accuracy and speed
meanwhile.

## What to do
Reset the GPU or reboot the node when it is convenient.

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
    Missing,
    RunNeeds,
    Scope,
    check,
    warn,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("row-remap-pending", id="DSD605", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def no_row_is_pending(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Judges the pending flag."""
    found = judged(gpus, run, env)
    for gpu in found:
        if gpu.health.remapped_rows_pending:
            yield warn(
                f"{named(gpu)} has a memory row to replace at the next reset, but none should be",
                effect="the GPU works with a little less memory until then",
                hint=f"run `nvidia-smi --gpu-reset -i {gpu.index}` as root, or reboot",
                gpu=gpu.index,
                uuid=gpu.uuid,
                rows_uncorrected=gpu.health.remapped_rows_uncorrected,
            )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.remapped_rows_pending,
        "health.remapped_rows",
        "replaced memory rows",
    )
