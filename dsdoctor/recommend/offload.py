"""The host memory of offload, and what torch adds by pinning.

The tensors are those of DeepSpeed 0.19.8 (`runtime/zero/stage_1_and_2.py`,
`runtime/zero/stage3.py`, `runtime/zero/partition_parameters.py`). Pinned blocks are those of
torch's caching host allocator (`aten/src/ATen/core/CachingHostAllocator.h` of torch 2.13): each is
rounded up to a power of two, and a freed block is kept for a later request of the same size. Tests
compare both with what real engines allocate.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable

from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.recommend.device import (
    FLAT_OVERFLOW_BYTES,
    NORM_BYTES,
    PARTITIONS_GRADIENTS,
    item_of,
    largest_gradient,
)
from dsdoctor.recommend.optimizers import state_bytes
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: torch rounds up pinned blocks from this size on; smaller ones do not matter.
PINNED_MINIMUM = 512
#: ZeRO-3 computes the norm of a gradient in pieces of this many elements.
NORM_PIECE = 250_000_000
#: Sub-groups of a rank that are listed one by one; a size of 1 would make billions.
_MOST_GROUPS = 50_000


def power_of_two(size: int) -> int:
    """What torch's pinned host allocator allocates for a block of this size.

    Every block is rounded up to a power of two (pytorch issue 95823, torch 1.11 and later), unless
    torch is configured otherwise (`pinned_max_round_threshold_mb`, pytorch pull request 171662).

    >>> power_of_two(5), power_of_two(8), power_of_two(0)
    (8, 8, 0)
    """
    return 0 if size <= 0 else 1 << (size - 1).bit_length()


def rounding(blocks: Iterable[int]) -> int:
    """Bytes that are lost by rounding up these blocks.

    >>> rounding([3 << 20, 1 << 20])
    1048576
    """
    return sum(power_of_two(block) - block for block in blocks if block > PINNED_MINIMUM)


def kept_free(freed: Iterable[int], later: Iterable[int]) -> int:
    """Bytes of freed blocks that the allocator still holds after later requests reused some.

    >>> kept_free([1 << 20, 1 << 20, 3 << 20], [1 << 20])
    5242880
    """
    spare = Counter(power_of_two(block) for block in freed if block > PINNED_MINIMUM)
    for block in later:
        size = power_of_two(block)
        if spare[size]:
            spare[size] -= 1
    return sum(size * count for size, count in spare.items())


@functools.lru_cache(maxsize=256)  # a plan asks again for each setting that it tries
def _partitions(model: ModelShape, width: int, world: int) -> tuple[int, ...]:
    """Bytes of a rank's part of each tensor, as ZeRO-3 cuts them; of all of it with one rank."""
    return tuple(width * -(-size // world) for size in model.tensors())


@functools.lru_cache(maxsize=256)
def _rounded_share(model: ModelShape, width: int) -> float:
    """Bytes that rounding loses per byte of the tensors, each in its own block."""
    whole = _partitions(model, width, 1)
    return rounding(whole) / max(1, sum(whole))


@functools.lru_cache(maxsize=256)
def _kept_share(model: ModelShape, width: int, world: int, later: tuple[int, ...]) -> float:
    """Bytes of freed blocks that stay for each byte of a rank's tensors."""
    single = _partitions(model, width, world)
    return kept_free(single, later) / max(1, sum(single))


@functools.lru_cache(maxsize=256)
def _touched_share(model: ModelShape, world: int) -> float:
    """Elements of the tensors that the ranks' partitions overlap, per existing element.

    A tensor that is cut by a boundary counts in full on both sides.
    """
    sizes = list(model.tensors())
    part = -(-sum(sizes) // world)
    touched = offset = 0
    for size in sizes:
        end = offset + size
        touched += size * (-(-end // part) - offset // part)
        offset = end
    return touched / max(1, offset)


def _partitioned_gradients(
    model: ModelShape, trained: int, setting: Setting
) -> tuple[list[MemoryItem], list[int]]:
    """ZeRO-1 and -2: memory in addition to states, and the pinned blocks of a rank.

    Pinned are fp32 master weights, the 16-bit staging copy, fp32 gradients and a buffer for the
    largest gradient. With accumulation, ZeRO-2 pins a buffer for each tensor of the partition.
    """
    ranks, width = setting.ranks_per_node, setting.width
    part = -(-trained // setting.world)
    largest = width * largest_gradient(model, trained)
    items = [item_of("gradient buffer", largest * ranks)]
    master = setting.master_width
    blocks = [master * part, width * part, master * part, largest]
    if setting.accumulation > 1 and setting.stage == PARTITIONS_GRADIENTS:
        touched = 1.0 if setting.lora_rank else _touched_share(model, setting.world)
        items.append(item_of("accumulated gradients", setting.kept_width * part * ranks * touched))
        if not setting.lora_rank:
            lost = width * part * _rounded_share(model, width) * ranks
            items.append(_rounded("pinned rounding", lost, setting))
    return items, blocks


def _partitioned_weights(
    model: ModelShape, trained: int, setting: Setting
) -> tuple[list[MemoryItem], list[int]]:
    """ZeRO-3: memory in addition to states, and the pinned blocks of a rank.

    Gradients are pinned in fp32 by sub-group and in 16 bits as a whole. An offloaded weight is
    first pinned separately. The trained ones are then copied into one flat buffer, which is always
    pinned, whatever `pin_memory` is, and torch keeps the freed blocks.
    """
    ranks, width = setting.ranks_per_node, setting.width
    part = -(-trained // setting.world)
    master, kept = setting.master_width, setting.kept_width
    group = max(setting.sub_group, -(-part // _MOST_GROUPS))
    full, rest = divmod(part, group)
    gradients = [master * group] * full + [master * rest, kept * part]
    norm = NORM_BYTES * min(NORM_PIECE, -(-largest_gradient(model, trained) // setting.world))
    if setting.precision == "fp16":
        norm = max(norm, FLAT_OVERFLOW_BYTES * part)
    items = [item_of("norm in fp64", norm * ranks, "clip")]
    if not setting.offloads_parameters:
        return items, gradients
    weights = -(-model.parameters // setting.world)
    items.append(item_of("parameters", width * weights * ranks))
    if setting.lora_rank:  # frozen weights stay in separate blocks
        return items, [*gradients, *_partitions(model, width, setting.world)]
    freed = width * weights * _kept_share(model, width, setting.world, tuple(gradients)) * ranks
    items.append(_rounded("pinned cache", freed, setting))
    return items, [*gradients, width * part]


def _rounded(name: str, size: float, setting: Setting) -> MemoryItem:
    """An item of the pinned allocator; nothing if nothing is pinned."""
    return item_of(name, size if setting.pin_memory and setting.on_gpu else 0)


def offloaded_items(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Host memory of all ranks of a host with the optimizer, and possibly weights, offloaded.

    Args:
        model: the shape.
        trained: parameters that have a gradient.
        setting: the option.
    """
    ranks, width = setting.ranks_per_node, setting.width
    part = -(-trained // setting.world)
    staging = setting.kept_width if setting.partitions_weights else width
    items = [
        item_of("master weights", setting.master_width * part * ranks),
        item_of("optimizer", state_bytes(model, trained, setting) / setting.world * ranks),
        item_of("gradients in fp32", setting.master_width * part * ranks),
        item_of("16-bit staging", staging * part * ranks),
    ]
    of_stage = _partitioned_weights if setting.partitions_weights else _partitioned_gradients
    more, blocks = of_stage(model, trained, setting)
    if not setting.pin_memory:
        blocks = [width * part] if setting.offloads_parameters and not setting.lora_rank else []
    lost = rounding(blocks) * ranks if setting.on_gpu else 0
    lost += sum(item.bytes for item in more if item.name == "pinned rounding")
    items += [item for item in more if item.name != "pinned rounding"]
    return [*items, item_of("pinned rounding", lost)]
