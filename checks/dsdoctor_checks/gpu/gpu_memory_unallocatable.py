"""Most of a GPU's free memory cannot be allocated.

## Why it matters
A job uses almost all free memory. If an allocation of that size fails, or reads back different data
than was written, the run fails at its first large batch or trains on corrupt data.

## What to do
Check for other users of the GPU (`nvidia-smi`), for MPS limits (`CUDA_MPS_PINNED_DEVICE_MEM_LIMIT`),
and for pending page retirements or row remaps. Then reset the GPU.

## References
- `dsdoctor check --deep`: allocates 90% of the free memory, writes it and reads it back
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DeepTrial, Finding, Scope, check, fail, ok, skip, warn
from dsdoctor_checks._util import GIB

CONDITION = Condition(
    "gpu-memory-unallocatable", id="DSD641", scope=Scope.NODE, since="0.1", leads_to=("gpu-oom",)
)


@check(CONDITION)
def memory_can_be_taken(trial: DeepTrial) -> Iterator[Finding]:
    """Judges the trial allocation on each GPU."""
    tried = [gpu for gpu in trial.gpus if gpu.alloc_ok is not None]
    if not tried:
        yield skip("no memory was allocated on any GPU")
        return
    bad = [gpu for gpu in tried if gpu.alloc_ok is False]
    for gpu in bad:
        error = gpu.alloc_error or ""
        short = "out of memory" in error.lower()
        size = (gpu.alloc_bytes or 0) / GIB
        free = (gpu.free_bytes or 0) / GIB
        yield (warn if short else fail)(
            f"{size:.1f} of the {free:.1f} GiB that GPU {gpu.name} reports as free cannot be used:"
            f" {error}",
            effect="the run fails when it needs that memory",
            hint="check for other users of the GPU with `nvidia-smi`, or reset it",
            gpu=gpu.name,
            size_gib=round(size, 1),
            free_gib=round(free, 1),
            error_text=error,
            hung=gpu.hung,
        )
    if not bad:
        yield ok(gpus={gpu.name: gpu.alloc_bytes for gpu in tried})
