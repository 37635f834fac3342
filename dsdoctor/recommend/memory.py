"""How much memory a training step takes, itemised per GPU and per host.

Bytes for each parameter follow the tensors that DeepSpeed 0.19.8 allocates
(`runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py`, `runtime/fp16/fused_optimizer.py`);
tests compare them with what real engines hold. docs/recommend.md derives every figure.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.recommend.activations import activation_bytes, logits_bytes
from dsdoctor.recommend.setting import MAX_LIVE, Setting
from dsdoctor.recommend.shape import ModelShape

__all__ = [
    "GIB",
    "MAX_LIVE",
    "MIB",
    "Memory",
    "Setting",
    "activation_bytes",
    "estimate",
    "logits_bytes",
    "model_state_bytes",
    "peak",
    "power_of_two",
]

GIB = 1 << 30
MIB = 1 << 20

#: CUDA context with lazy loading, measured on an A100 with torch 2.1 (0.47 GiB).
CUDA_CONTEXT = 481 * MIB
#: torch.distributed and NCCL take 1 to 2 GiB more once there is more than one rank.
NCCL_BYTES = GIB
#: Assumed, not measured: a Python process with torch, CUDA and deepspeed loaded.
PROCESS_BYTES = 2 * GIB
#: Assumed, not measured: one worker of a data loader.
WORKER_BYTES = 256 * MIB
#: Default of `sub_group_size`: ZeRO-3 steps this many parameters at once.
SUB_GROUP = 1_000_000_000
#: torch rounds pinned blocks up from this size; smaller ones do not matter.
PINNED_MINIMUM = 512
#: ZeRO-2 partitions gradients, ZeRO-1 does not.
PARTITIONS_GRADIENTS = 2


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


def power_of_two(size: int) -> int:
    """What torch's pinned host allocator takes for a block of this size.

    Every block is rounded up to a power of two (pytorch issue 95823, torch 1.11 and later).

    >>> power_of_two(5), power_of_two(8), power_of_two(0)
    (8, 8, 0)
    """
    return 0 if size <= 0 else 1 << (size - 1).bit_length()


def _item(name: str, size: float, phase: str = "resident") -> MemoryItem:
    return MemoryItem(name=name, bytes=int(size), phase=phase)


def _largest(model: ModelShape, trained: int) -> int:
    """Elements of the largest tensor that has a gradient."""
    return min(model.largest_module, trained)


def _weights(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Weights on the device that computes."""
    held = model.parameters + (trained if setting.lora_rank else 0)
    if not setting.partitions_weights:
        return [_item("parameters", setting.width * held)]
    if setting.offloads_parameters:
        return []
    return [_item("parameters", setting.width * held / setting.world)]


def _gradients(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Gradients in the training precision, on the device that computes.

    Without accumulation they grow while activations shrink, so the passes do not see both in full:
    all that the peak of the backward pass holds of them is the largest. With accumulation they are
    there all the time. ZeRO-1 partitions at the last pass before the step; until then it keeps all.
    With the optimizer on the host, gradients leave as soon as they are reduced, through a buffer
    of the size of the largest (`temp_grad_buffer_for_gpu_offload`).
    """
    width, accumulates = setting.width, setting.accumulation > 1
    largest = width * _largest(model, trained)
    share = trained if setting.stage == 0 else trained / setting.world
    whole = _item("gradients of all ranks", width * (trained - share), "backward")
    if setting.stage == 3:  # noqa: PLR2004  # its partition is allocated once and for all
        held = 0 if setting.offloads_optimizer else width * share
        return [_item("gradients", held)]
    if setting.offloads_optimizer:
        items = [_item("gradient buffer", largest)]
        if setting.stage < PARTITIONS_GRADIENTS and accumulates:
            items.append(_item("gradients of all ranks", width * trained, "backward"))
        return items
    if not accumulates:
        return [
            _item("gradients", width * share, "step"),
            _item("gradient in flight", largest, "backward"),
        ]
    items = [_item("gradients", width * share)]
    return items if setting.stage != 1 else [*items, whole]


def _optimizer(trained: int, setting: Setting) -> list[MemoryItem]:
    """Master weights, optimizer state and fp32 gradients where they are not on the host.

    The step of stages 0 to 2 casts and flattens gradients: stage 0 casts each tensor and flattens
    the casts (4 + 4 bytes), stages 1 and 2 flatten, then cast. With fp32 there is nothing to cast.
    """
    share = 1 if setting.stage == 0 else setting.world
    part = trained / share
    plain = setting.precision == "fp32"
    # Plain fp32 training keeps no master copy; ZeRO clones its partition in any precision.
    master = 0 if plain and setting.stage == 0 else 4
    items = [_item("optimizer", (master + setting.state_bytes) * part)]
    if setting.stage == 0:
        if not plain:
            items.append(_item("gradients in fp32", 4 * part, "step"))
            items.append(_item("flattening", 4 * part, "step"))
    elif setting.stage < 3:  # noqa: PLR2004
        items.append(_item("gradients in fp32", 0 if plain else 4 * part, "step"))
        items.append(_item("flattening", setting.width * part, "step"))
    else:
        items.append(_item("gradients in fp32", 4 * min(part, SUB_GROUP), "step"))
    return items


def _buckets(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Communication buffers: the reduce bucket, twice with overlap_comm, and gathered weights."""
    if setting.stage == 0:
        size = min(setting.bucket, trained) if setting.world > 1 else 0
        return [_item("buckets", setting.width * size, "backward")]
    bucket = setting.width * setting.bucket * (2 if setting.overlap else 1)
    if not setting.partitions_weights:
        return [_item("buckets", bucket, "backward")]  # made for each backward pass anew
    live = min(model.parameters, max(setting.max_live, model.largest_module))
    gathered = live if setting.world > 1 or setting.offloads_parameters else 0
    return [
        _item("buckets", bucket),
        _item("gathered parameters", setting.width * gathered, "backward"),
        _item("gathered gradient", setting.width * _largest(model, trained), "backward"),
    ]


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
        _item("master weights", 4 * part * ranks),
        _item("optimizer", setting.state_bytes * part * ranks),
        _item("gradients in fp32", 4 * part * ranks),
        _item("16-bit staging", width * part * ranks),
    ]
    if setting.stage < 3:  # noqa: PLR2004
        largest = width * _largest(model, trained)
        blocks = [4 * part, width * part, 4 * part, largest]
        items.append(_item("gradient buffer", largest * ranks))
        if setting.accumulation > 1 and setting.stage == PARTITIONS_GRADIENTS:
            items.append(_item("accumulated gradients", width * part * ranks))
    else:
        full, rest = divmod(part, SUB_GROUP)
        blocks = [4 * SUB_GROUP] * full + [4 * rest, width * part]
        if setting.offloads_parameters:
            weights = -(-model.parameters // setting.world)
            items.append(_item("parameters", width * weights * ranks))
            blocks.append(width * weights)
    if setting.pin_memory and setting.on_gpu:
        lost = sum(power_of_two(block) - block for block in blocks if block > PINNED_MINIMUM)
        items.append(_item("pinned rounding", lost * ranks))
    return items


def estimate(model: ModelShape, setting: Setting, *, workers: int = 0) -> Memory:
    """What a setting takes on each GPU and on each host.

    Before it reaches its GPU, the model lies in host memory once for each rank, unless ZeRO-3
    builds it partitioned (`zero.Init`): the phase `load` of the host.

    Args:
        model: the shape.
        setting: the option.
        workers: data loader workers of each rank.
    """
    trained = model.lora_parameters(setting.lora_rank) if setting.lora_rank else model.parameters
    device = _weights(model, trained, setting) + _gradients(model, trained, setting)
    if not setting.offloads_optimizer:
        device += _optimizer(trained, setting)
    device += _buckets(model, trained, setting)
    device.append(_item("activations", activation_bytes(model, setting), "backward"))
    device.append(_item("logits", logits_bytes(model, setting), "backward"))
    ranks = setting.ranks_per_node
    host = [_item("processes", PROCESS_BYTES * ranks)]
    training = [_item("data loader workers", WORKER_BYTES * workers * ranks)]
    if setting.offloads_optimizer:
        training += _offloaded(model, trained, setting)
    if not setting.on_gpu:
        host += training
        host += [_item(f"{item.name} (ranks)", item.bytes * ranks, item.phase) for item in device]
        return Memory((), _kept(host))
    host += [_item(item.name, item.bytes, "training") for item in training]
    if not setting.partitions_weights:
        loading = setting.width * model.parameters * ranks
        host.append(_item("weights being loaded", loading, "load"))
    device.append(_item("CUDA context", CUDA_CONTEXT))
    if setting.world > 1:
        device.append(_item("NCCL", NCCL_BYTES))
    return Memory(_kept(device), _kept(host))


def _kept(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    return tuple(item for item in items if item.bytes)


#: Items that DeepSpeed's estimators mean by model states.
_STATES = frozenset({"parameters", "gradients", "optimizer", "gradients in fp32", "master weights"})


def model_state_bytes(items: Iterable[MemoryItem]) -> int:
    """Weights, gradients and optimizer at the step: what DeepSpeed's estimators mean."""
    return sum(item.bytes for item in items if item.name in _STATES)
