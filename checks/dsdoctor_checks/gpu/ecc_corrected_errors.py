"""A GPU has corrected very many memory errors.

## Why it matters
ECC corrects single errors, and a card that corrects a few works well. Millions of them come from a part
that fails. While they are corrected, programs run on, but calls to the driver (`nvidia-smi`, DCGM) may
take a minute under load, and errors that cannot be corrected may follow.

## What to do
Run `dcgmi diag -r 3`. If the count keeps rising, have the card replaced.

## References
- Azure/azurehpc-health-checks `azure_gpu_ecc.nhc` and its limits for A100, H100 and H200 (read 2026-12-01)
- NVIDIA/DCGM#313 (a GB200 with 9.6 billion corrected errors, read 2026-12-01)
- nvml.h of CUDA 13.5: nvmlDeviceGetTotalEccErrors, nvmlDeviceGetMemoryErrorCounter
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    warn,
)

from ._util import judged, named, skip_unreported

CONDITION = Condition("ecc-corrected-errors", id="DSD623", scope=Scope.NODE, since="0.1")

#: Older cards retire pages, and there is no known limit of what they correct.
_AMPERE = 8


class CorrectedLimits(Limits, frozen=True, kw_only=True):
    """Tolerated corrected errors, since the driver was loaded or over the life of the card.

    Attributes:
        max_errors: in all memory since the driver was loaded, or in DRAM over the life of the card.
        max_sram_errors: in SRAM, over the life of the card.
    """

    max_errors: float = 20_000_000
    max_sram_errors: float = 10_000


def _excess(gpu: Gpu, limits: CorrectedLimits) -> tuple[int, str, float] | None:
    """The count that is too high, what it counts, and its limit."""
    health = gpu.health
    for count, where, most in (
        (
            health.ecc_volatile_corrected,
            "memory errors since the driver was loaded",
            limits.max_errors,
        ),
        (health.dram_aggregate_corrected, "DRAM errors over its life", limits.max_errors),
        (health.sram_aggregate_corrected, "SRAM errors over its life", limits.max_sram_errors),
    ):
        if count is not None and count > most:
            return count, where, most
    return None


@check(CONDITION)
def few_errors_were_corrected(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: CorrectedLimits
) -> Iterator[Finding]:
    """Compares the counts of corrected errors with the limits of a cloud's health checks."""
    found = tuple(gpu for gpu in judged(gpus, run, env) if (gpu.cc_major or _AMPERE) >= _AMPERE)
    for gpu in found:
        excess = _excess(gpu, limits)
        if excess is None:
            continue
        count, where, most = excess
        yield warn(
            f"{named(gpu)} has corrected {count} {where}, but at most {most:.0f} are expected",
            effect="`nvidia-smi` and DCGM may hang under load, and uncorrectable errors may follow",
            hint="run `dcgmi diag -r 3`, and have the card replaced if the count keeps rising",
            gpu=gpu.index,
            uuid=gpu.uuid,
            corrected=count,
            max_corrected=most,
            volatile_corrected=gpu.health.ecc_volatile_corrected,
            dram_aggregate_corrected=gpu.health.dram_aggregate_corrected,
            sram_aggregate_corrected=gpu.health.sram_aggregate_corrected,
            rows_corrected=gpu.health.remapped_rows_corrected,
        )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.ecc_volatile_corrected,
        "health.ecc_volatile_corrected",
        "corrected memory errors",
    )
