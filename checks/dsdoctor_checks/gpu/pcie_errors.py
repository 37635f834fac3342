"""A GPU's PCIe link reports errors.

## Why it matters
A fatal error takes the GPU off the bus. An uncorrectable one aborts the transfer, and the program
with it. Occasional corrected errors cost nothing; thousands come from bad contact in a card, riser or
cable, and slow down every copy.

## What to do
Reseat the card, replace riser or cable, then check whether the count still grows:
`nvidia-smi -q -d PCI` and `dmesg | grep "PCIe Bus Error"`.

## References
- nvml.h of CUDA 13.5: NVML_FI_DEV_PCIE_COUNT_* (fields 173-183), nvmlDeviceGetPcieReplayCounter
- Linux Documentation/PCI/pcieaer-howto.rst
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    KernelLog,
    Limits,
    Missing,
    RunNeeds,
    Scope,
    check,
    fail,
    ok,
    warn,
)
from dsdoctor_checks._util import amount

from ._util import judged, named, skip_unreported

CONDITION = Condition(
    "pcie-errors",
    id="DSD620",
    scope=Scope.NODE,
    since="0.1",
    leads_to=("gpu-hardware-fault",),
)


class BusLimits(Limits, frozen=True, kw_only=True):
    """Tolerated errors since the driver was loaded.

    Attributes:
        max_uncorrectable: neither corrected nor fatal; some drivers count probes of a disabled
            function.
        max_corrected: corrected; a good link has a few in weeks.
        max_replays: packets that were sent again.
    """

    max_uncorrectable: float = 0
    max_corrected: float = 10000
    max_replays: float = 10000


def _log(gpu: Gpu, log: KernelLog | Missing) -> dict[str, int]:
    """Number of kernel log lines about a GPU, by severity."""
    if isinstance(log, Missing) or gpu.pci_bdf is None:
        return {}
    place = gpu.pci_bdf.rpartition(".")[0]
    return {event.severity: event.count for event in log.bus if event.bdf == place}


@check(CONDITION)
def link_is_sound(
    gpus: Gpus,
    log: KernelLog | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    limits: BusLimits,
) -> Iterator[Finding]:
    """Judges NVML's counters, and the kernel log if it is readable."""
    found = judged(gpus, run, env)
    for gpu in found:
        lines = _log(gpu, log)
        errors = gpu.pcie.errors
        fatal = max(errors.fatal or 0, lines.get("fatal", 0))
        broken = max(errors.non_fatal or 0, lines.get("nonfatal", 0))
        corrected = max(errors.correctable or 0, lines.get("corrected", 0))
        replays = gpu.pcie.replay_counter or 0
        if fatal:
            say, what = fail, f"{amount(fatal, 'fatal PCIe error')}, but 0 are expected"
        elif broken > limits.max_uncorrectable:
            say, what = warn, f"{amount(broken, 'uncorrectable PCIe error')}, but 0 are expected"
        elif corrected > limits.max_corrected:
            say = warn
            what = f"{corrected} corrected PCIe errors, but at most {limits.max_corrected:g} are expected"
        elif replays > limits.max_replays:
            say = warn
            what = f"{replays} PCIe replays, but at most {limits.max_replays:g} are expected"
        else:
            yield ok(gpu=gpu.index, corrected=corrected, replays=replays)
            continue
        yield say(
            f"{named(gpu)} has {what}",
            effect="the GPU falls off the bus"
            if fatal
            else "copies to and from the GPU are slow, or abort the program",
            hint="reseat the card and check riser, cable and slot",
            gpu=gpu.index,
            uuid=gpu.uuid,
            bdf=gpu.pci_bdf,
            fatal=fatal,
            uncorrectable=broken,
            corrected=corrected,
            replays=replays,
            max_corrected=limits.max_corrected,
            max_replays=limits.max_replays,
        )
    yield from skip_unreported(
        found, lambda gpu: gpu.pcie.replay_counter, "pcie.replay_counter", "PCIe errors"
    )
