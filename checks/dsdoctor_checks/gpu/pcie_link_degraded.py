"""A GPU uses fewer PCIe lanes, or a lower PCIe speed, than it and its slot support.

## Why it matters
Dirt, a bad riser or a badly seated card costs lanes. Copies to and from the host, which offload
depends on, slow down in proportion. The link generation drops at idle to save power, so it is judged
under load only: at 50% utilization or more, in a performance state from P0 to P2. A slot that is older
than the card is only noted.

## What to do
Reseat the card or the riser, and check the slot's setting in the BIOS.

## References
- nvml.h of CUDA 13.5: nvmlDeviceGetCurrPcieLinkWidth, nvmlDeviceGetMaxPcieLinkWidth,
  nvmlDeviceGetCurrPcieLinkGeneration, nvmlDeviceGetGpuMaxPcieLinkGeneration
- NVIDIA/open-gpu-kernel-modules#731, read 2026-12-01: the link of one card in each performance state
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    EventReason,
    Finding,
    Gpu,
    Gpus,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import amount

from ._util import consumer, judged, named, skip_unreported

CONDITION = Condition("pcie-link-degraded", id="DSD611", scope=Scope.NODE, since="0.1")

#: Consumer boards share 16 lanes between two slots, so eight are normal there.
SHARED_WIDTH = 8
#: With this fraction of the lanes or less, a data-center card is unfit for service.
FATAL_PART = 4
#: From this utilization on, in percent, a GPU runs its link at full speed.
BUSY_PERCENT = 50
#: Up to this performance state as well: the driver keeps GeForce cards in P2 while CUDA computes. The
#: link is as fast there as in P0; P5 and P8 slow it down.
SLOWEST_STATE = 2


def _under_load(gpu: Gpu) -> bool:
    """Whether the link should run at full speed now."""
    reasons = gpu.health.event_reasons
    idle = reasons is None or bool(reasons & EventReason.IDLE)
    state = gpu.performance_state
    return state is not None and state <= SLOWEST_STATE and not idle and _busy(gpu)


def _busy(gpu: Gpu) -> bool:
    return (gpu.utilization_gpu_percent or 0) >= BUSY_PERCENT


def _slow(gpu: Gpu) -> Iterator[Finding]:
    """Judges the link generation under load; a slot that is older than the card is noted."""
    link = gpu.pcie
    if not link.generation or not link.max_generation:
        return
    if _under_load(gpu) and link.generation < link.max_generation:
        yield warn(
            f"{named(gpu)} is under load and its PCIe link runs at generation {link.generation}, "
            f"but it and its slot support {link.max_generation}",
            effect="copies to and from the host run at half speed or less",
            hint="reseat the card and check the slot's link speed in the BIOS",
            gpu=gpu.index,
            uuid=gpu.uuid,
            bdf=gpu.pci_bdf,
            generation=link.generation,
            max_generation=link.max_generation,
            utilization_percent=gpu.utilization_gpu_percent,
        )
    elif link.gpu_max_generation and link.max_generation < link.gpu_max_generation:
        yield ok(
            "the slot has an older PCIe generation than the card",
            gpu=gpu.index,
            max_generation=link.max_generation,
            gpu_max_generation=link.gpu_max_generation,
        )


def _shared_slot(gpu: Gpu, width: int) -> bool:
    return consumer(gpu) and width >= SHARED_WIDTH


@check(CONDITION)
def all_lanes_are_up(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    """Compares the link width with what card and slot support."""
    found = judged(gpus, run, env)
    for gpu in found:
        yield from _slow(gpu)
        width, most = gpu.pcie.width, gpu.pcie.max_width
        if not width or not most or width >= most:
            continue
        if _shared_slot(gpu, width) or " MX" in (gpu.name or "") or "Laptop" in (gpu.name or ""):
            yield ok(
                "such boards share their PCIe lanes", gpu=gpu.index, width=width, max_width=most
            )
            continue
        fatal = width * FATAL_PART <= most and not consumer(gpu)
        yield (fail if fatal else warn)(
            f"{named(gpu)} uses {amount(width, 'PCIe lane')}, but it and its slot have {most}",
            effect=f"copies to and from the host run at {100 * width // most}% of their speed",
            hint="reseat the card and check riser, slot and BIOS",
            gpu=gpu.index,
            uuid=gpu.uuid,
            bdf=gpu.pci_bdf,
            width=width,
            max_width=most,
            percent=100 * width // most,
        )
    yield from skip_unreported(found, lambda gpu: gpu.pcie.width, "pcie.width", "the PCIe width")
