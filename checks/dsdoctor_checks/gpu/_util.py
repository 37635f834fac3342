"""Helpers for GPU checks: which GPUs are judged, what they are called, what is not reported."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from dsdoctor.api import Environment, Finding, Gpu, Gpus, Missing, RunNeeds, skip
from dsdoctor_checks._util import chosen, listed

#: NVML return codes (nvml.h, nvmlReturn_t).
NO_PERMISSION = 4
GPU_IS_LOST = 15
RESET_REQUIRED = 16


def named(gpu: Gpu) -> str:
    """A GPU's name in messages; of some GPUs, a paste gives only the PCI address, or neither.

    >>> named(Gpu(index=3, name="NVIDIA H200"))
    'GPU 3 (NVIDIA H200)'
    """
    number: int | None = gpu.index
    if number is None:
        where = f"the GPU at {gpu.pci_bdf}" if gpu.pci_bdf else "a GPU"
        return where + (f" ({gpu.name})" if gpu.name else "")
    return f"GPU {number} ({gpu.name})" if gpu.name else f"GPU {number}"


def selector(gpu: Gpu) -> str:
    """A GPU as the argument of `nvidia-smi -i`: its index, else its PCI address, else `ID`.

    >>> selector(Gpu(index=3))
    '3'
    """
    number: int | None = gpu.index
    return str((gpu.pci_bdf or "ID") if number is None else number)


def consumer(gpu: Gpu) -> bool:
    """Whether it is a card for personal computers.

    >>> consumer(Gpu(index=0, name="NVIDIA GeForce RTX 4090")), consumer(Gpu(index=0, name="NVIDIA H200"))
    (True, False)
    """
    return bool({"GeForce", "Titan", "TITAN"} & {gpu.brand, *(gpu.name or "").split()})


def word(enabled: bool | None) -> str:
    """A mode in messages."""
    return "on" if enabled else "off"


def judged(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> tuple[Gpu, ...]:
    """The GPUs of the run.

    A lost GPU has no UUID. If the run selects a UUID that no GPU has, the lost one may be it.
    """
    found = chosen(gpus, run, env)
    if run.gpus and len(found) < len(run.gpus):
        nameless = (gpu for gpu in gpus.gpus if gpu.error and gpu.uuid is None)
        found += tuple(gpu for gpu in nameless if gpu not in found)
    return found


def without_instance(gpu: Gpu) -> bool:
    """Whether MIG is enabled on a GPU and NVML, asked for its MIG devices, found none."""
    unread = any(name.startswith("mig_devices") for name in gpu.unread)
    return gpu.mig_mode is True and gpu.mig_devices == () and not unread


def skip_unreported(
    gpus: tuple[Gpu, ...], value: Callable[[Gpu], object], field: str, what: str
) -> Iterator[Finding]:
    """Skips for the GPUs that do not report a value, with NVML's reason if it had one."""
    silent: dict[str, list[Gpu]] = {}
    for gpu in gpus:
        if value(gpu) is None:
            unread = gpu.unread.get(field) or gpu.unread.get("handle")
            reason = unread.name if unread else ""
            silent.setdefault(reason, []).append(gpu)
    for reason, those in silent.items():
        yield skip(
            f"{_subject(those)} not report {what}" + (f" ({reason})" if reason else ""),
            gpus=[gpu.index for gpu in those],
            why=reason or None,
        )


def _subject(gpus: Sequence[Gpu]) -> str:
    """Several GPUs and their verb; of some, a paste gives no index.

    >>> _subject([Gpu(index=0), Gpu(index=3)])
    'GPUs 0 and 3 do'
    """
    numbers: list[int | None] = [gpu.index for gpu in gpus]
    if None in numbers:
        names = list(dict.fromkeys(named(gpu) for gpu in gpus))
        return f"{listed(names)} {'does' if len(names) == 1 else 'do'}"
    return f"GPU {numbers[0]} does" if len(numbers) == 1 else f"GPUs {listed(numbers)} do"
