"""The memory of one GPU: weights, gradients and optimizer by ZeRO stage, plus the passes.

Bytes for each parameter follow the tensors that DeepSpeed 0.19.8 allocates
(`runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py`, `runtime/fp16/fused_optimizer.py`);
tests compare them with what real engines hold. docs/recommend.md derives every figure.
"""

from __future__ import annotations

from collections.abc import Sequence

from dsdoctor.model.launch_plan import MemoryItem
from dsdoctor.model.units import GIB, MIB
from dsdoctor.recommend.activations import Moment
from dsdoctor.recommend.blocks import frozen_inputs
from dsdoctor.recommend.buckets import (
    COPYING,
    LAST_REDUCTION,
    beside_bucket,
    bucket_bytes,
    last_reduction,
)
from dsdoctor.recommend.gathering import Levels, gathered, level_at
from dsdoctor.recommend.optimizers import state_bytes
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: CUDA context with lazy loading, measured on an A100 with torch 2.1 (0.47 GiB).
CUDA_CONTEXT = 481 * MIB
#: torch.distributed and NCCL need 1 to 2 GiB more if there is more than one rank.
NCCL_BYTES = GIB
#: cuBLAS's workspace: 8 MiB for each handle and stream, 32 MiB from Hopper on (torch's default).
WORKSPACE = 32 * MIB
#: ZeRO-2 partitions gradients, ZeRO-1 does not.
PARTITIONS_GRADIENTS = 2
#: Norms of gradients are computed on a copy in fp64.
NORM_BYTES = 8
#: The search for inf and NaN before DeepSpeed 0.19.6: a cast to fp32 (4), isnan (1), isinf (1),
#: both (1), and their cast to fp32 (4) exist at once (`_has_inf_or_nan` of stage_1_and_2.py).
OVERFLOW_BYTES = 11
#: ZeRO-3 searches the flat gradients with `isinf`: their absolute value in 16 bits and a mask
#: (aten/src/ATen/native/TensorCompare.cpp of torch 2.13).
FLAT_OVERFLOW_BYTES = 3
#: Share of what the passes allocate that the caching allocator cannot use again.
FRAGMENTATION = 0.03
#: Bits of a frozen weight in 4-bit NF4 with double quantization (arXiv:2305.14314, section 3).
QUANTIZED_BITS = 4.127
#: Moments at which no weight has its gradient yet.
_BEFORE_GRADIENTS = frozenset({"forward", "loss", "output layer"})
#: A bucket is reduced, in a measured pass. Norms are computed then, not in the passes between.
REDUCTION = "reduction"
_WITHOUT_NORM = frozenset({*_BEFORE_GRADIENTS, LAST_REDUCTION, COPYING, "last norm", "backward"})


def item_of(name: str, size: float, phase: str = "resident") -> MemoryItem:
    """An item in whole bytes."""
    return MemoryItem(name=name, bytes=int(size), phase=phase)


def largest_gradient(model: ModelShape, trained: int) -> int:
    """Elements of the largest tensor that has a gradient."""
    return min(model.largest_module, trained)


def _weights(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Weights on the computing device."""
    whole = undivided_weights(model, trained, setting)
    if not setting.partitions_weights:
        return [item_of("parameters", whole)]
    items = []
    if setting.quantized:  # scales are attributes of a weight, not a part of it
        scales = model.block_parameters * (QUANTIZED_BITS - 4) / 8
        whole -= int(scales)
        items.append(item_of("scales of 4-bit weights", scales))
    if setting.offloads_parameters:
        return items
    items.append(item_of("parameters", whole / setting.world))
    if setting.secondary > 1:  # `_partition_param_sec` keeps a share of the ranks of a group
        items.append(item_of("secondary weights", whole / setting.secondary))
    return items


def undivided_weights(model: ModelShape, trained: int, setting: Setting) -> int:
    """Bytes of the weights of the whole model, adapters among them, as training holds them."""
    held = model.parameters + (trained if setting.lora_rank else 0)
    whole = setting.width * held
    if setting.lora_rank and setting.lora_fp32:
        whole += (4 - setting.width) * (trained - setting.saved)
    if setting.quantized:
        linear = model.block_parameters
        whole -= int(linear * (setting.width - QUANTIZED_BITS / 8))
    return whole


def _loading(
    model: ModelShape, trained: int, setting: Setting, others: Sequence[MemoryItem]
) -> MemoryItem:
    """The whole model on the GPU before ZeRO-3 partitions it, minus what replaces it later.

    `_configure_distributed_model` moves it there before the optimizer and its buffers are created.
    `zero.Init` then replaces one parameter after another by its partition
    (`_convert_to_zero_parameters` of runtime/zero/parameter_offload.py).
    """
    later = sum(item.bytes for item in others if item.phase == "resident")
    first = setting.loads_whole and setting.on_gpu
    whole = undivided_weights(model, trained, setting) if first else 0
    return item_of("weights being loaded", max(0, whole - later), "load")


def _own_gradients(model: ModelShape, trained: int, setting: Setting) -> tuple[float, float]:
    """Bytes of the gradients of a rank's partition, and of the rest of the tensors it cuts."""
    if setting.stage == 0:
        return setting.width * trained, 0
    share = trained / setting.world
    if setting.stage == 3:  # noqa: PLR2004  # its partitions are cut before gradients are made
        return setting.kept_width * share, 0
    if _one_flat_gradient(setting) or _in_bf16_optimizer(setting):
        return setting.kept_width * share, 0  # a flat buffer cuts tensors
    if setting.lora_rank:  # an adapter is small compared with a partition, an embedding is not
        whole = min(trained, share + (model.embedding_parameters if setting.saved_head else 0))
    else:
        whole = max(share, model.whole_gradients(setting.world))
    return setting.kept_width * share, setting.kept_width * (whole - share)


def _in_bf16_optimizer(setting: Setting) -> bool:
    """ZeRO-1 in bf16 with fp32 gradients uses a separate optimizer, except with offload.

    `BF16_Optimizer` keeps the fp32 gradients of all parameters from step to step, and the bf16 ones
    of a pass until the step is done.
    """
    wide = setting.precision == "bf16" and setting.kept_width > setting.width
    return wide and setting.stage == 1 and not setting.offloads_optimizer


def _one_flat_gradient(setting: Setting) -> bool:
    """ZeRO-2 adds what it reduces to one flat fp32 buffer, made with the first gradient."""
    return setting.stage == PARTITIONS_GRADIENTS and setting.kept_width > setting.width


def _gradients(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Gradients in the training precision that exist before a pass, and at the step.

    Without accumulation, none exist before a pass, except ZeRO-3's, which are allocated once and
    kept. ZeRO-1 partitions at the last pass before the step; until then it keeps all. With the
    optimizer on the host, gradients are moved there as soon as they are reduced, through a buffer
    of the size of the largest (`temp_grad_buffer_for_gpu_offload`).
    """
    accumulates = setting.accumulation > 1
    share, rest = _own_gradients(model, trained, setting)
    whole = setting.kept_width * trained
    passing = ("loss", "backward")
    items: list[MemoryItem] = []
    if setting.stage == 3:  # noqa: PLR2004
        return [] if setting.offloads_optimizer else [item_of("gradients", share)]
    if setting.offloads_optimizer:
        items.append(item_of("gradient buffer", setting.width * largest_gradient(model, trained)))
        if setting.stage < PARTITIONS_GRADIENTS and accumulates:
            items += [item_of("gradients of all ranks", whole, phase) for phase in passing]
        return items
    if _in_bf16_optimizer(setting):
        items.append(item_of("gradients", share))
        items.append(item_of("gradients of all ranks", whole - share))
        return [*items, item_of("finished gradients", setting.width * trained, "step")]
    phases = ("resident",) if accumulates else ("clip", "step") if setting.stage else ("step",)
    if _one_flat_gradient(setting) and not accumulates:
        phases = ("backward", *phases)
    for phase in phases:
        items.append(item_of("gradients", share, phase))
        items.append(item_of("boundary gradients", rest, phase))
    if accumulates and setting.stage == 1:
        other = whole - share - rest
        items += [item_of("gradients of all ranks", other, phase) for phase in passing]
    return items


def _finished(model: ModelShape, trained: int, setting: Setting, moment: Moment) -> float:
    """Bytes of the weight gradients that this pass has computed and keeps.

    ZeRO-3 and offload move them away. ZeRO-1 and -2 keep those of their own partition. With
    accumulation, a pass adds its own to those of ZeRO-2, and ZeRO-0 and -1 add in place. Space for
    the whole partition is allocated when its first gradient is reduced (`grads_in_partition` of
    stage_1_and_2.py): from then on, a rank that owns the end of an embedding has space for all of
    it. In ZeRO-1, gradients of other ranks stay in the buffer of the bucket; one that the bucket
    cannot take stays a tensor of its own until the end of the pass (`reduce_ipg_grads`), with
    offload too.
    """
    alone = setting.stage == 1 and setting.accumulation == 1 and not setting.lora_rank
    beside = setting.bucket if alone else None
    if setting.offloads_optimizer and alone:
        return setting.width * model.whole_gradients(
            setting.world, moment.finished, beside, own=False
        )
    if setting.stage == 3 or (setting.offloads_optimizer and setting.stage):  # noqa: PLR2004
        return 0
    made = setting.width * moment.finished
    if _one_flat_gradient(setting):
        return 0
    if _in_bf16_optimizer(setting):
        return made
    if setting.stage == 0:
        return 0 if setting.accumulation > 1 else made
    if setting.stage == 1 and setting.accumulation > 1:
        return 0
    # until the next one does not fit into the first bucket, all of them are in its buffer
    following = 0 if setting.lora_rank else model.largest_matrix
    inside = moment.finished + following <= setting.bucket
    if inside and moment.name not in (LAST_REDUCTION, COPYING):
        return 0
    kept = min(made, sum(_own_gradients(model, trained, setting)))
    if setting.lora_rank:
        return kept
    return max(kept, setting.width * model.whole_gradients(setting.world, moment.finished, beside))


def _optimizer(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Master weights, optimizer state and temporaries of the step, unless they are on the host.

    The step of stage 0 casts each gradient and flattens the casts (4 + 4 bytes); ZeRO flattens the
    gradients of its partition, then casts them. Before, ZeRO-1 and -2 compute the norm of each
    gradient on a copy in fp64. With fp32 there is nothing to cast.
    """
    share = 1 if setting.stage == 0 else setting.world
    part = trained / share
    plain = setting.precision == "fp32"
    # Plain fp32 training keeps no master copy; ZeRO clones its partition in any precision.
    master = 0 if plain and setting.stage == 0 else setting.master_width
    cast = 0 if setting.kept_width == setting.master_width else setting.master_width
    items = [item_of("optimizer", master * part + state_bytes(model, trained, setting) / share)]
    if setting.stage == 0:
        if not plain and master:
            items.append(item_of("gradients in fp32", 4 * part, "step"))
            items.append(item_of("flattening", 4 * part, "step"))
        return items
    half = setting.precision == "fp16"
    searched: float
    if setting.stage < 3:  # noqa: PLR2004
        largest = largest_gradient(model, trained)
        norm = NORM_BYTES * min(part, largest)
        searched = OVERFLOW_BYTES * largest if setting.elementwise_overflow and half else 0
        items.append(item_of("norm in fp64", norm if norm > searched else 0, "clip"))
        items.append(item_of("overflow check", 0 if norm > searched else searched, "clip"))
        items.append(item_of("gradients in fp32", 0 if plain else cast * part, "step"))
    else:
        searched = FLAT_OVERFLOW_BYTES * part if half else 0
        items.append(item_of("overflow check", searched, "clip"))
        part = min(part, setting.sub_group)
        items.append(item_of("gradients in fp32", (4 if plain else cast) * part, "step"))
    items.append(item_of("temporaries of the step", setting.step_bytes * part, "step"))
    flat = _one_flat_gradient(setting) or _in_bf16_optimizer(setting)
    return [*items, item_of("flattening", 0 if flat else setting.kept_width * part, "step")]


def takes_norms_in_pass(setting: Setting) -> bool:
    """Whether the norm of each gradient is computed when it is reduced.

    ZeRO-1 and -2 with the optimizer on the host do so before it leaves the GPU.
    """
    return setting.offloads_optimizer and setting.stage in (1, 2)


def _norm_in_pass(
    model: ModelShape, trained: int, setting: Setting, moment: Moment
) -> tuple[int, int]:
    """Bytes of a gradient's norm in fp64 within the backward pass, or of the search for overflow.

    They follow one another, so only the larger counts, and the other is 0.

    With the optimizer on the host, ZeRO-1 and -2 compute it for each gradient before that leaves
    the GPU (`set_norm_for_param_grad_in_gpu`). The output layer's comes while all activations are
    there; a tied one has its gradient with the embedding's, at the end.
    """
    if not takes_norms_in_pass(setting) or moment.name in _WITHOUT_NORM:
        return 0, 0
    last = moment.name == "embedding"
    largest = moment.reduced or largest_gradient(model, trained)
    if model.tied and not last and moment.gradient:
        largest = min(largest, model.largest_matrix)
    norm = NORM_BYTES * min(-(-trained // setting.world), largest)
    searched = OVERFLOW_BYTES * largest if setting.elementwise_overflow else 0
    return (norm, 0) if norm > searched else (0, searched)


def _gathered_then(
    model: ModelShape, trained: int, setting: Setting, moment: Moment, levels: Levels
) -> int:
    """Elements of gathered weights at a moment of the backward pass, by how much of it is done."""
    share = moment.finished / max(1, trained)
    if setting.lora_rank:  # the gradients are those of the blocks alone
        head = model.embedding_parameters / max(1, model.parameters)
        share = head + (1 - head) * share
    return level_at(levels, share, 1 / max(1, model.layers))


def _passes(
    model: ModelShape, trained: int, setting: Setting, moments: Sequence[Moment]
) -> list[MemoryItem]:
    """The loss, and the moment of the backward pass that needs the most.

    Buckets are allocated when the first gradient arrives, so they never coexist with the logits,
    unless ZeRO-1 accumulates: it reduces in the last pass only, and the next pass begins with the
    buckets of the one before (`ready_for_gradients` of stage_1_and_2.py). When a bucket is reduced,
    ZeRO-1 and -2 flatten the ranks' parts of it into a copy (`allreduce_bucket`); at the end of the
    pass that is what is left to be reduced.
    """
    at_loss, levels, in_forward = gathered(model, setting)
    bucket = 0 if setting.partitions_weights else bucket_bytes(trained, setting)
    keeps_buckets = setting.stage == 1 and setting.accumulation > 1
    early = keeps_buckets or (setting.buckets_first and setting.stage > 0)
    # `reduce_scatter_coalesced` of ZeRO-3 flattens; another type is cast before the reduction
    flattens = setting.partitions_weights and setting.world > 1
    casts = setting.stage and setting.sent_width != setting.width
    measured = any(moment.name == COPYING for moment in moments)
    if setting.stage in (1, 2) and not measured:
        moments = [*moments, last_reduction(model, trained, setting)]

    def items_at(moment: Moment, phase: str) -> list[MemoryItem]:
        later = moment.name not in _BEFORE_GRADIENTS
        copies = moment.name == LAST_REDUCTION or (later and (flattens or casts))
        dequantized = setting.width * model.largest_matrix if setting.quantized else 0
        norm, searched = _norm_in_pass(model, trained, setting, moment)
        waiting, copied = beside_bucket(trained, setting, moment, copies=bool(copies))
        # a part of the fp32 gradient is cast on the GPU (`_offload_grad_partition_at_boundary`)
        fetched = moment.fetched * (setting.kept_width + setting.master_width)
        left = 1 - min(1.0, moment.finished / max(1, trained))
        inputs = frozen_inputs(model, setting, left, later=later)
        if moment.name in ("loss", "forward"):
            weights = at_loss if moment.name == "loss" else in_forward
        else:
            weights = _gathered_then(model, trained, setting, moment, levels)
        found = [
            item_of("activations", moment.activations + inputs, phase),
            item_of("logits", moment.logits, phase),
            item_of("working block", moment.working, phase),
            item_of("gradient in flight", setting.width * moment.gradient, phase),
            item_of("finished gradients", _finished(model, trained, setting, moment), phase),
            item_of("buckets", bucket if later or early else 0, phase),
            item_of("reduction copy", setting.sent_width * copied + fetched, phase),
            item_of("gradient beside bucket", setting.width * waiting, phase),
            item_of("gathered parameters", setting.width * weights, phase),
            item_of("dequantized matrix", dequantized if later else 0, phase),
            item_of("norm in fp64", norm, phase),
            item_of("overflow check", searched, phase),
        ]
        passing = moment.bytes + setting.width * moment.gradient
        return [*found, item_of("fragmentation", FRAGMENTATION * passing, phase)]

    loss = items_at(moments[0], "loss")
    later = [items_at(moment, "backward") for moment in moments[1:]]
    return loss + max(later, key=lambda items: sum(item.bytes for item in items))


def device_items(
    model: ModelShape, trained: int, setting: Setting, moments: Sequence[Moment]
) -> list[MemoryItem]:
    """All items on one GPU (or of one CPU rank), by phase.

    Args:
        model: the shape.
        trained: parameters that have a gradient.
        setting: the option.
        moments: those of forward and backward pass, the loss first.
    """
    device = _weights(model, trained, setting) + _gradients(model, trained, setting)
    if not setting.offloads_optimizer:
        device += _optimizer(model, trained, setting)
    if setting.partitions_weights:
        device.append(item_of("buckets", bucket_bytes(trained, setting)))
    device += _passes(model, trained, setting, moments)
    if setting.partitions_weights:
        device.append(_loading(model, trained, setting, device))
    if setting.on_gpu:
        device.append(item_of("CUDA context", CUDA_CONTEXT))
        device.append(item_of("workspaces", WORKSPACE))
        if setting.world > 1:
            device.append(item_of("NCCL", NCCL_BYTES))
    return device
