"""The hardware to plan for: from the facts of this host, or from the user's description."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from dsdoctor.errors import UsageError
from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpu, Gpus, MigDevice
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.units import GIB, gib

#: Memory that is used on an idle card: screens, the driver, a persistence daemon.
IDLE_SHARE = 0.05
IDLE_BYTES = 1 << 30
#: The hint if GPUs are requested and none is known.
_OTHERWISE = (
    "omit `--gpus`, or plan for another machine with `dsdoctor recommend --like 8xH100-SXM`"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Device:
    """A GPU, or a slice of one, to plan for.

    Attributes:
        index: its number in PCI order, which is that of `nvidia-smi`.
        free_bytes: memory free now.
        total_bytes: memory of the card.
        cc: compute capability.
        name: product.
        uuid: `GPU-…` or `MIG-…`, None = not known.
        mig: it is a MIG device.
    """

    index: int
    free_bytes: int
    total_bytes: int
    cc: tuple[int, int]
    name: str = "GPU"
    uuid: str | None = None
    mig: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class Machine:
    """Hardware of one host; with several nodes all are alike.

    Attributes:
        devices: the chosen GPUs in PCI order; empty = train on CPUs.
        host_bytes: host memory available to a job now (within the cgroup), None = not known.
        cpus: CPUs that the job may use (affinity and cgroup quota), None = not known.
        system: `Linux`, `Darwin` or `Windows`.
        notes: what the reader must know about how this was read.
    """

    devices: tuple[Device, ...] = ()
    host_bytes: int | None = None
    cpus: int | None = None
    system: str = "Linux"
    notes: tuple[str, ...] = ()


def _names(gpu: Gpu, selector: str) -> bool:
    """Whether a selector matches a GPU; a UUID may be abbreviated, as in CUDA."""
    if selector.isdecimal():
        return int(selector) == gpu.index
    return bool(gpu.uuid) and selector.startswith("GPU-") and str(gpu.uuid).startswith(selector)


def _slice(gpus: Sequence[Gpu], selector: str) -> tuple[Gpu, MigDevice] | None:
    for gpu in gpus:
        for mig in gpu.mig_devices or ():
            if mig.uuid and mig.uuid.startswith(selector):
                return gpu, mig
    return None


def _visible(gpus: Sequence[Gpu], value: str | None) -> list[Gpu]:
    """The GPUs that `CUDA_VISIBLE_DEVICES` allows, in its order; all if it is not set."""
    if value is None:
        return list(gpus)
    seen: list[Gpu] = []
    for token in (part.strip() for part in value.split(",")):
        gpu = next((gpu for gpu in gpus if _names(gpu, token)), None)
        held = _slice(gpus, token) if gpu is None and token.startswith("MIG-") else None
        gpu = held[0] if held else gpu
        if gpu is None:
            break  # CUDA hides an entry that it does not know, and all after it
        if gpu not in seen:
            seen.append(gpu)
    return seen


def _pick(found: Sequence[Gpu], visible: Sequence[Gpu], selector: str, value: str | None) -> Gpu:
    gpu = next((gpu for gpu in found if _names(gpu, selector)), None)
    if gpu is None:
        there = ", ".join(str(other.index) for other in found)
        raise UsageError(
            f"GPU `{selector}` does not exist; expected one of {there} (see `nvidia-smi -L`)"
            if there
            else f"`--gpus` selects GPU `{selector}`, but there is no NVIDIA GPU; {_OTHERWISE}"
        )
    if gpu not in visible:
        last = len(visible) - 1
        raise UsageError(
            f"`--gpus {selector}` is GPU {gpu.index} of `nvidia-smi`, but "
            f"`CUDA_VISIBLE_DEVICES={value}` leaves "
            + (f"{len(visible)}, which torch numbers 0 to {last}" if visible else "none")
            + f"; add {gpu.index} to it or unset it"
        )
    return gpu


def _gib(size: int) -> str:
    return f"{gib(size)} GiB"


def _busy(gpu: Gpu, free: int, total: int) -> str | None:
    """Other processes on a GPU, if they use a relevant amount of memory."""
    used = total - free
    if used <= max(IDLE_BYTES, int(IDLE_SHARE * total)):
        return None
    pids = sorted({process.pid for process in gpu.processes or ()})
    listed = ", ".join(map(str, pids[:4])) + (", …" if len(pids) > 4 else "")  # noqa: PLR2004
    by = f" by {len(pids)} process{'es' * (len(pids) > 1)} (pid {listed})" if pids else ""
    return f"GPU {gpu.index} has {_gib(free)} of {_gib(total)} free now, {_gib(used)} are used{by}"


def _device_of(gpu: Gpu) -> Device | None:
    total = gpu.memory_total_bytes
    if gpu.error is not None or total is None or gpu.cc is None:
        return None
    free = gpu.memory_free_bytes
    return Device(
        index=gpu.index,
        free_bytes=total if free is None else free,
        total_bytes=total,
        cc=gpu.cc,
        name=gpu.name or "GPU",
        uuid=gpu.uuid,
    )


def _sliced(gpu: Gpu, mig: MigDevice) -> Device | None:
    total = mig.memory_total_bytes
    if total is None and mig.memory_mib is not None:
        total = mig.memory_mib << 20
    if gpu.error is not None or total is None or gpu.cc is None or mig.uuid is None:
        return None
    return Device(
        index=gpu.index,
        free_bytes=max(0, total - (mig.memory_used_bytes or 0)),
        total_bytes=total,
        cc=gpu.cc,
        name=mig.name or f"{gpu.name or 'GPU'} MIG {mig.profile or ''}".strip(),
        uuid=mig.uuid,
        mig=True,
    )


def _mig_choice(
    found: Sequence[Gpu], visible: Sequence[Gpu], selectors: Sequence[str]
) -> tuple[Gpu, MigDevice] | None:
    """The slice to plan for: the requested one, or the first if every visible GPU is sliced.

    Raises:
        UsageError: slices that cannot be used together, or one that does not exist.
    """
    asked = [selector for selector in selectors if selector.startswith("MIG-")]
    if len(asked) > 1 or (asked and len(selectors) > 1):
        raise UsageError(
            f"`--gpus` selects {len(selectors)} devices, including a MIG device; "
            "expected one MIG device alone: a process sees only one, and NCCL cannot connect them"
        )
    if asked:
        held = _slice(found, asked[0])
        if held is None:
            raise UsageError(
                f"MIG device `{asked[0]}` does not exist; expected one that `nvidia-smi -L` lists"
            )
        return held
    if selectors or not visible or not all(gpu.mig_mode and gpu.mig_devices for gpu in visible):
        return None
    first = visible[0]
    return first, (first.mig_devices or ())[0]


def _devices(gpus: Gpus, run: RunNeeds, value: str | None, notes: list[str]) -> tuple[Device, ...]:
    found = gpus.gpus
    visible = _visible(found, value)
    held = _mig_choice(found, visible, run.gpus)
    if held is not None:
        device = _sliced(*held)
        if device is None:
            raise UsageError(
                f"the memory of the MIG device on GPU {held[0].index} cannot be read; {_OTHERWISE}"
            )
        notes.append(
            f"the plan is for one MIG device, {device.name} ({device.uuid}): "
            "a process sees only one, and NCCL cannot connect several"
        )
        return (device,)
    if run.gpus:
        chosen = [_pick(found, visible, selector, value) for selector in run.gpus]
    else:
        chosen = visible
        if len(visible) < len(found):
            shown = ", ".join(str(gpu.index) for gpu in visible) or "none"
            notes.append(f"`CUDA_VISIBLE_DEVICES={value}` leaves these GPUs visible: {shown}")
    devices = []
    for gpu in sorted(chosen, key=lambda gpu: gpu.index):
        device = _device_of(gpu)
        if device is None or (gpu.mig_mode and gpu.mig_devices is not None):
            why = (
                "it could not be read"
                if device is None
                else "it is split into MIG devices; select one with `--gpus MIG-…`"
            )
            if run.gpus:
                raise UsageError(f"GPU {gpu.index} cannot be used in the plan: {why}")
            notes.append(f"GPU {gpu.index} is left out: {why}")
            continue
        devices.append(device)
        if (busy := _busy(gpu, device.free_bytes, device.total_bytes)) is not None:
            notes.append(busy)
    return tuple(devices)


def machine_from(
    gpus: Gpus | Missing,
    resources: Resources | Missing,
    run: RunNeeds,
    os: OsInfo | Missing,
    visible: str | None = None,
) -> Machine:
    """The machine as the facts describe it; --gpus chooses among its GPUs.

    Args:
        gpus: the GPUs, or why they are not known.
        resources: CPUs and memory of the host.
        run: the request.
        os: the operating system.
        visible: `CUDA_VISIBLE_DEVICES` as the job would inherit it, None = not set.

    Raises:
        UsageError: a requested GPU does not exist or cannot be read.
    """
    notes: list[str] = []
    devices: tuple[Device, ...] = ()
    if isinstance(gpus, Missing):
        if run.wants_gpu:
            raise UsageError(f"the requested GPUs could not be read ({gpus.detail}); {_OTHERWISE}")
        notes.append(f"no GPU was read: {gpus.detail}")
    else:
        devices = _devices(gpus, run, visible, notes)
    known = None if isinstance(resources, Missing) else resources
    return Machine(
        devices=devices,
        host_bytes=known.memory_available_bytes if known else None,
        cpus=known.cpus_usable if known else None,
        system="Linux" if isinstance(os, Missing) else os.system,
        notes=tuple(notes),
    )


def machine_of(
    *,
    gpu_gib: float,
    count: int = 1,
    cc: tuple[int, int] = (8, 0),
    host_gib: float | None = None,
    cpus: int | None = None,
    system: str = "Linux",
) -> Machine:
    """A machine of which only the figures are known; its GPUs are assumed to be free."""
    size = int(gpu_gib * GIB)
    return Machine(
        devices=tuple(
            Device(index=index, free_bytes=size, total_bytes=size, cc=cc) for index in range(count)
        ),
        host_bytes=None if host_gib is None else int(host_gib * GIB),
        cpus=cpus,
        system=system,
    )


_CAPABILITY = re.compile(r"^(\d{1,2})\.(\d)$")


def capability(text: str) -> tuple[int, int]:
    """A compute capability as people write it.

    >>> capability("8.6")
    (8, 6)

    Raises:
        UsageError: it is not one.
    """
    match = _CAPABILITY.match(text)
    if match is None:
        raise UsageError(
            f"`--gpu-cc {text}` is not a compute capability; expected, for example, `8.0`"
        )
    return int(match[1]), int(match[2])
