"""A page of GPU memory is pending retirement.

## Why it matters
GPUs before Ampere retire faulty memory pages at the next reset. Until then, a program may receive the
faulty page. A card can retire 64 pages.

## What to do
Reset the GPU or reboot. At 60 retired pages or more, replace the card.

## References
- https://docs.nvidia.com/deploy/dynamic-page-retirement/
- nvml.h of CUDA 13.5: nvmlDeviceGetRetiredPagesPendingStatus
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
    warn,
)

from ._util import judged, named, selector, skip_unreported

CONDITION = Condition("page-retirement-pending", id="DSD606", scope=Scope.NODE, since="0.1")


class PageLimits(Limits, frozen=True, kw_only=True):
    """Tolerated retired pages.

    Attributes:
        max_pages: from this count on, NVIDIA replaces cards.
    """

    max_pages: float = 60


@check(CONDITION)
def no_page_is_pending(
    gpus: Gpus, run: RunNeeds, env: Environment | Missing, limits: PageLimits
) -> Iterator[Finding]:
    """Judges the pending flag and the number of retired pages."""
    found = judged(gpus, run, env)
    for gpu in found:
        health = gpu.health
        pages = (health.retired_pages_single_bit or 0) + (health.retired_pages_double_bit or 0)
        worn = pages >= limits.max_pages
        if not worn and not health.retired_pages_pending:
            continue
        yield (fail if worn else warn)(
            f"{named(gpu)} has retired {pages} memory pages, but fewer than {limits.max_pages:g} are "
            "expected"
            if worn
            else f"{named(gpu)} has a memory page pending retirement, but none is expected",
            effect="a program that uses the faulty page fails with a CUDA error",
            hint="replace the card"
            if worn
            else f"run `nvidia-smi --gpu-reset -i {selector(gpu)}` as root, or reboot",
            gpu=gpu.index,
            uuid=gpu.uuid,
            pages=pages,
            pending=health.retired_pages_pending,
            max_pages=limits.max_pages,
        )
    yield from skip_unreported(
        found,
        lambda gpu: gpu.health.retired_pages_pending,
        "health.retired_pages_pending",
        "retired memory pages",
    )
