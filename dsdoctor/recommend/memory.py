"""How much memory a training step takes, itemised per GPU and per host.

Bytes for each parameter follow the tensors that DeepSpeed 0.19.8 allocates
(`runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py`, `runtime/fp16/fused_optimizer.py`);
tests compare them with what real engines hold. docs/recommend.md derives every figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence

from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.model.units import GIB, MIB
from dsdoctor.recommend.activations import Moment, moments
from dsdoctor.recommend.device import (
    PARTITIONS_GRADIENTS,
    SUB_GROUP,
    device_items,
    item_of,
    largest_gradient,
)
from dsdoctor.recommend.saved import trained_parameters
from dsdoctor.recommend.setting import MAX_LIVE, Setting
from dsdoctor.recommend.shape import ModelShape

__all__ = [
    "GIB",
    "MAX_LIVE",
    "MIB",
    "Memory",
    "Setting",
    "at_peak",
    "estimate",
    "model_state_bytes",
    "peak",
    "power_of_two",
]

#: Assumed, not measured: a Python process with torch, CUDA and deepspeed loaded.
PROCESS_BYTES = 2 * GIB
#: Assumed, not measured: one worker of a data loader.
WORKER_BYTES = 256 * MIB
#: torch rounds pinned blocks up from this size; smaller ones do not matter.
PINNED_MINIMUM = 512


@dataclasses.dataclass(frozen=True)
class Memory:
    """What a setting takes: items on each GPU, and on each host for all its ranks."""

    gpu: tuple[MemoryItem, ...]
    host: tuple[MemoryItem, ...]

    @property
    def gpu_bytes(self) -> int:
        """Peak on one GPU."""
        return peak(self.gpu)

    @property
    def host_bytes(self) -> int:
        """Peak on one host."""
        return peak(self.host)


def peak(items: Iterable[MemoryItem]) -> int:
    """Resident bytes plus those of the phase that takes most."""
    sums: dict[str, int] = {}
    for item in items:
        sums[item.phase] = sums.get(item.phase, 0) + item.bytes
    return sums.pop("resident", 0) + max(sums.values(), default=0)


def at_peak(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """What is there when most is: resident items and those of the phase that takes most."""
    known = tuple(items)
    sums: dict[str, int] = {}
    for item in known:
        if item.phase != "resident":
            sums[item.phase] = sums.get(item.phase, 0) + item.bytes
    most = max(sums, key=lambda phase: sums[phase], default="")
    return tuple(item for item in known if item.phase in ("resident", most))


def power_of_two(size: int) -> int:
    """What torch's pinned host allocator takes for a block of this size.

    Every block is rounded up to a power of two (pytorch issue 95823, torch 1.11 and later).

    >>> power_of_two(5), power_of_two(8), power_of_two(0)
    (8, 8, 0)
    """
    return 0 if size <= 0 else 1 << (size - 1).bit_length()


def _offloaded(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """What offload puts into one host, and what pinning rounds up.

    Stages 1 and 2: fp32 master weights, a 16-bit staging copy, fp32 gradients of the rank's
    partition and a buffer for the largest gradient are pinned, Adam's two moments are not; with
    accumulation, stage 2 keeps each gradient in host memory (16 bit). Stage 3: gradients (16 bit
    and fp32) and offloaded weights are pinned, fp32 ones by sub-group.
    """
    ranks = setting.ranks_per_node
    part = -(-trained // setting.world)
    width = setting.width
    items = [
        item_of("master weights", 4 * part * ranks),
        item_of("optimizer", setting.state_bytes * part * ranks),
        item_of("gradients in fp32", 4 * part * ranks),
        item_of("16-bit staging", width * part * ranks),
    ]
    if setting.stage < 3:  # noqa: PLR2004
        largest = width * largest_gradient(model, trained)
        blocks = [4 * part, width * part, 4 * part, largest]
        items.append(item_of("gradient buffer", largest * ranks))
        if setting.accumulation > 1 and setting.stage == PARTITIONS_GRADIENTS:
            items.append(item_of("accumulated gradients", width * part * ranks))
    else:
        full, rest = divmod(part, SUB_GROUP)
        blocks = [4 * SUB_GROUP] * full + [4 * rest, width * part]
        if setting.offloads_parameters:
            weights = -(-model.parameters // setting.world)
            items.append(item_of("parameters", width * weights * ranks))
            blocks.append(width * weights)
    if setting.pin_memory and setting.on_gpu:
        lost = sum(power_of_two(block) - block for block in blocks if block > PINNED_MINIMUM)
        items.append(item_of("pinned rounding", lost * ranks))
    return items


def estimate(
    model: ModelShape,
    setting: Setting,
    *,
    workers: int = 0,
    passes: Sequence[Moment] | None = None,
) -> Memory:
    """What a setting takes on each GPU and on each host.

    Before it reaches its GPU, the model lies in host memory once for each rank, unless ZeRO-3
    builds it partitioned (`zero.Init`): the phase `load` of the host.

    Args:
        model: the shape.
        setting: the option.
        workers: data loader workers of each rank.
        passes: the moments of forward and backward pass, where they were measured; None = by
            formula.
    """
    trained = trained_parameters(model, setting)
    device = device_items(model, trained, setting, passes or moments(model, setting))
    ranks = setting.ranks_per_node
    host = [item_of("processes", PROCESS_BYTES * ranks)]
    training = [item_of("data loader workers", WORKER_BYTES * workers * ranks)]
    if setting.offloads_optimizer:
        training += _offloaded(model, trained, setting)
    if not setting.on_gpu:
        host += training
        host += [item_of(f"{item.name} (ranks)", item.bytes * ranks, item.phase) for item in device]
        return Memory((), _kept(host))
    host += [item_of(item.name, item.bytes, "training") for item in training]
    if not setting.partitions_weights or setting.loads_first:
        loading = setting.width * model.parameters * ranks
        host.append(item_of("weights being loaded", loading, "load"))
    return Memory(_kept(device), _kept(host))


def _kept(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    return tuple(item for item in items if item.bytes)


#: Items that DeepSpeed's estimators mean by model states.
_STATES = frozenset({"parameters", "gradients", "optimizer", "gradients in fp32", "master weights"})


def model_state_bytes(items: Iterable[MemoryItem]) -> int:
    """Weights, gradients and optimizer at the step: what DeepSpeed's estimators mean."""
    return sum(
        item.bytes
        for item in items
        if item.name in _STATES and item.phase in ("resident", "step", "training")
    )
