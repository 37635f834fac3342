"""How much memory a training step needs, itemized per GPU and per host.

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
from dsdoctor.recommend.device import device_items, item_of, undivided_weights
from dsdoctor.recommend.offload import offloaded_items
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
]

#: Assumed, not measured: a Python process with torch, CUDA and deepspeed loaded.
PROCESS_BYTES = 2 * GIB
#: Assumed, not measured: one worker of a data loader.
WORKER_BYTES = 256 * MIB
#: A file of weights, of which no more than one is read at a time: `max_shard_size` of transformers
#: 4.34 to 4.57 (`save_pretrained`).
SHARD_BYTES = 5 * 10**9


@dataclasses.dataclass(frozen=True)
class Memory:
    """The memory of a setting: items on each GPU, and on each host for all its ranks."""

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
    """Resident bytes plus those of the phase that needs the most."""
    sums: dict[str, int] = {}
    for item in items:
        sums[item.phase] = sums.get(item.phase, 0) + item.bytes
    return sums.pop("resident", 0) + max(sums.values(), default=0)


def at_peak(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    """The items at the peak: resident items and those of the phase that needs the most."""
    known = tuple(items)
    sums: dict[str, int] = {}
    for item in known:
        if item.phase != "resident":
            sums[item.phase] = sums.get(item.phase, 0) + item.bytes
    most = max(sums, key=lambda phase: sums[phase], default="")
    return tuple(item for item in known if item.phase in ("resident", most))


def estimate(
    model: ModelShape,
    setting: Setting,
    *,
    workers: int = 0,
    passes: Sequence[Moment] | None = None,
) -> Memory:
    """What a setting needs on each GPU and on each host.

    Before the model is moved to its GPU, it is in host memory once per rank, unless ZeRO-3 builds
    it partitioned (`zero.Init`). This is the phase `load` of the host.

    Args:
        model: the shape.
        setting: the option.
        workers: data loader workers of each rank.
        passes: the moments of forward and backward pass if they were measured; None = by formula.
    """
    trained = trained_parameters(model, setting)
    device = device_items(model, trained, setting, passes or moments(model, setting))
    ranks = setting.ranks_per_node
    host = [item_of("processes", PROCESS_BYTES * ranks)]
    training = [item_of("data loader workers", WORKER_BYTES * workers * ranks)]
    if setting.offloads_optimizer:
        training += offloaded_items(model, trained, setting)
    if not setting.on_gpu:
        host += training
        host += [item_of(f"{item.name} (ranks)", item.bytes * ranks, item.phase) for item in device]
        return Memory((), _not_empty(host))
    host += [item_of(item.name, item.bytes, "training") for item in training]
    loading = _loading_bytes(model, trained, setting) * ranks
    host.append(item_of("weights being loaded", loading, "load"))
    return Memory(_not_empty(device), _not_empty(host))


def _loading_bytes(model: ModelShape, trained: int, setting: Setting) -> int:
    """Host memory of a rank for a model that is being loaded to the GPU.

    transformers quantizes each weight on the GPU as soon as it is read. Under ZeRO-3, 4.51.3 moves
    it back to the host (`_load_state_dict_into_meta_model` of modeling_utils.py), 5.23 does not.
    """
    if setting.quantized:
        whole = undivided_weights(model, trained, setting)
        return whole if setting.partitions_weights else min(whole, SHARD_BYTES)
    if setting.partitions_weights and not setting.loads_first:
        return 0
    return setting.width * model.parameters


def _not_empty(items: Iterable[MemoryItem]) -> tuple[MemoryItem, ...]:
    return tuple(item for item in items if item.bytes)


#: Items that DeepSpeed's estimators count as model states.
_STATES = frozenset({"parameters", "gradients", "optimizer", "gradients in fp32", "master weights"})


def model_state_bytes(items: Iterable[MemoryItem]) -> int:
    """Weights, gradients and optimizer at the step, as DeepSpeed's estimators count them."""
    return sum(
        item.bytes
        for item in items
        if item.name in _STATES and item.phase in ("resident", "step", "training")
    )
