"""How much memory a training step takes, itemised per GPU and per host.

Bytes for each parameter follow the tensors that DeepSpeed 0.19.8 allocates
(`runtime/zero/stage_1_and_2.py`, `runtime/zero/stage3.py`, `runtime/fp16/fused_optimizer.py`).
Activations follow Korthikanti et al., arXiv:2205.05198, for models with biases and LayerNorm, and
a count of saved tensors for gated models with RMSNorm.

Where DeepSpeed's own estimators are right, the model states here equal them: ZeRO-2 on the GPU,
with and without offload, and the host's 16 bytes on one node. They are not followed where they are
wrong: the host figure of ZeRO-2 offload is not divided by the number of nodes; ZeRO-3 counts
neither the fp32 gradients of the sub-group being stepped nor weights kept gathered within
`stage3_max_live_parameters`; and there is no estimator for stages 0 and 1.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from dsdoctor.model.launch import MemoryItem
from dsdoctor.recommend.models import ModelShape

GIB = 1 << 30
MIB = 1 << 20

#: CUDA context with lazy loading, measured on an A100 with torch 2.1 (0.47 GiB).
CUDA_CONTEXT = 481 * MIB
#: torch.distributed and NCCL take 1 to 2 GiB more once there is more than one rank.
NCCL_BYTES = GIB
#: Assumed, not measured: a Python process with torch, CUDA and deepspeed loaded.
PROCESS_BYTES = 2 * GIB
#: Bytes for each logit: an fp32 copy and the gradient in 16 bit.
LOGIT_BYTES = 6
#: Default of `sub_group_size`: ZeRO-3 steps this many parameters at once.
SUB_GROUP = 1_000_000_000
#: Default of `stage3_max_live_parameters`.
MAX_LIVE = 1_000_000_000
#: torch rounds pinned blocks up from this size; smaller ones do not matter.
PINNED_MINIMUM = 512


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One option to size.

    Attributes:
        stage: ZeRO stage.
        offload: `none`, `optimizer` or `optimizer+parameters`.
        micro_batch, sequence: size of one pass on one GPU.
        accumulation: passes before a step.
        world, nodes: ranks in all, and hosts.
        precision: `bf16`, `fp16` or `fp32`.
        attention: `flash` (or any kernel that stores no scores) or `eager`.
        checkpointing: activations of each block are recomputed.
        lora_rank: 0 = all parameters are trained.
        state_bytes: optimizer state of a parameter beside its master copy (Adam 8, Lion 4, SGD 0).
        bucket: elements of `reduce_bucket_size`.
        overlap: `overlap_comm`, which doubles the bucket.
        max_live: elements of `stage3_max_live_parameters`.
        pin_memory: offloaded tensors are pinned.
        on_gpu: False = ranks run on CPUs, and everything is host memory.
    """

    stage: int = 0
    offload: str = "none"
    micro_batch: int = 1
    sequence: int = 1024
    accumulation: int = 1
    world: int = 1
    nodes: int = 1
    precision: str = "bf16"
    attention: str = "flash"
    checkpointing: bool = False
    lora_rank: int = 0
    state_bytes: int = 8
    bucket: int = 200_000_000
    overlap: bool = True
    max_live: int = MAX_LIVE
    pin_memory: bool = True
    on_gpu: bool = True

    @property
    def width(self) -> int:
        """Bytes of a weight in the training precision."""
        return 4 if self.precision == "fp32" else 2

    @property
    def offloads_optimizer(self) -> bool:
        """Whether the optimizer runs on the host."""
        return self.offload != "none"

    @property
    def offloads_parameters(self) -> bool:
        """Whether weights lie on the host."""
        return self.offload == "optimizer+parameters"

    @property
    def ranks_per_node(self) -> int:
        """Ranks on one host."""
        return max(1, self.world // self.nodes)


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
    """Resident bytes plus the greater of the backward pass and the step."""
    sums = {"resident": 0, "backward": 0, "step": 0}
    for item in items:
        sums[item.phase] += item.bytes
    return sums["resident"] + max(sums["backward"], sums["step"])


def power_of_two(size: int) -> int:
    """What torch's pinned host allocator takes for a block of this size.

    Every block is rounded up to a power of two (pytorch issue 95823, torch 1.11 and later).

    >>> power_of_two(5), power_of_two(8), power_of_two(0)
    (8, 8, 0)
    """
    return 0 if size <= 0 else 1 << (size - 1).bit_length()


def deepspeed_zero2(
    parameters: int, gpus_per_node: int, nodes: int, *, offload: bool, factor: float = 1.5
) -> tuple[int, int]:
    """(host, GPU) bytes as `estimate_zero2_model_states_mem_needs` of DeepSpeed 0.19.8 says.

    GPU: 2P + 18P/N, with offload 2P. Host: 4P for each rank of the node, with offload
    P · max(4N, 16), both times the factor; the latter is not divided by the nodes.
    """
    world = gpus_per_node * nodes
    if offload:
        return int(parameters * max(4 * world, 16) * factor), 2 * parameters
    return (
        int(parameters * 4 * gpus_per_node * factor),
        2 * parameters + int(18 * parameters / world),
    )


def deepspeed_zero3(
    parameters: int,
    largest: int,
    gpus_per_node: int,
    nodes: int,
    *,
    offload: str,
    zero_init: bool = True,
    factor: float = 1.5,
) -> tuple[int, int]:
    """(host, GPU) bytes as `estimate_zero3_model_states_mem_needs` of DeepSpeed 0.19.8 says.

    GPU: 4L plus 18P/N, 2P/N (optimizer offloaded) or 0 (parameters too). Host, times the factor:
    with zero.Init 16P/M or 18P/M; without it at least 4P for each rank of the node.
    """
    share = 1 / nodes
    if offload == "none":
        gpu = 4 * largest + int(18 * parameters / (gpus_per_node * nodes))
        host = 4 * gpus_per_node * (largest if zero_init else parameters)
        return int(host * factor), gpu
    each = 18 if offload == "optimizer+parameters" else 16
    gpu = 4 * largest
    if offload == "optimizer":
        gpu += int(2 * parameters / (gpus_per_node * nodes))
    per_parameter = each * share if zero_init else max(4 * gpus_per_node, each * share)
    return int(parameters * per_parameter * factor), gpu


def activation_bytes_per_layer(model: ModelShape, setting: Setting) -> int:
    """What the backward pass of one block needs kept, without recomputation.

    Models with LayerNorm and a plain MLP: s·b·h·(34 + 5·a·s/h) in 16 bit, where the 5·a·s/h (the
    attention scores) is not there with a flash kernel (arXiv:2205.05198, equations 2 and 6); 34 is
    18 for attention and norms plus 4 for each unit of the MLP's inner width (4h of them).

    Gated models with RMSNorm: two norms keep 4h each (input, fp32 copy of twice that width,
    output), two residuals, queries and keys before and after rotation, values, the attention
    output, and four tensors of the MLP's inner width; query-key norms keep three more copies. For
    Llama-3.1-8B, Qwen3-4B, Qwen3-8B, SmolLM2-360M and gemma-2b this gives 27.8, 37.2, 29.8, 24.7
    and 45.4 · h elements; measured were 28, 38, 29.8, 24 and 48. The list of saved tensors was
    settled with these five figures at hand, so they are a fit and no independent proof.
    """
    tokens = setting.micro_batch * setting.sequence
    if model.norm_bias:
        linear = tokens * (18 * model.hidden + 4 * model.intermediate) * setting.width // 2
    else:
        elements = 4 * model.hidden * model.norms_per_layer + 2 * model.hidden
        elements += 3 * model.query_width + 3 * model.kv_width
        elements += (4 if model.gated else 2) * model.intermediate
        if model.qk_norm:
            elements += 3 * (model.query_width + model.kv_width)
        linear = tokens * elements * setting.width
    if setting.attention == "flash":
        return linear
    return linear + 5 * tokens * model.heads * setting.sequence * setting.width // 2


def logits_bytes(model: ModelShape, setting: Setting) -> int:
    """The logits in fp32 and their gradient: 6 bytes for each token and vocabulary entry."""
    return LOGIT_BYTES * setting.micro_batch * setting.sequence * model.vocab


def activation_bytes(model: ModelShape, setting: Setting) -> int:
    """Activations of one pass.

    With full recomputation each block keeps its input (2·s·b·h) and one block is alive at a time.
    The logits are taken to be gone before the first block is recomputed, so only what that
    block takes beyond
    them counts (Llama-3.1-8B at s = 32768: 31 GiB with checkpointing, 240 GiB without, measured;
    6 bytes a logit, of the 4 to 6 that are reported, was taken because it meets both).
    """
    layer = activation_bytes_per_layer(model, setting)
    if not setting.checkpointing:
        return model.layers * layer
    tokens = setting.micro_batch * setting.sequence
    kept = setting.width * tokens * model.hidden * model.layers
    return kept + max(0, layer - logits_bytes(model, setting))


def _item(name: str, size: float, phase: str = "resident") -> MemoryItem:
    return MemoryItem(name=name, bytes=int(size), phase=phase)


def _weights_and_gradients(model: ModelShape, setting: Setting) -> list[MemoryItem]:
    """Weights and gradients on the device that computes."""
    total = model.parameters
    trained = model.lora_parameters(setting.lora_rank) if setting.lora_rank else total
    held = total + (trained if setting.lora_rank else 0)
    width, world = setting.width, setting.world
    items = []
    if setting.stage < 3:  # noqa: PLR2004
        items.append(_item("parameters", width * held))
    elif not setting.offloads_parameters:
        items.append(_item("parameters", width * held / world))
    if setting.offloads_optimizer and setting.stage != 1:
        return items  # each gradient goes to the host as soon as it is reduced
    # Stage 1 reduces and frees gradients as stage 2 does, once it has no passes left to add up
    # (`reduce_ready_partitions_and_remove_grads`); measured by `dsdoctor smoke`.
    whole = setting.stage == 0 or (setting.stage == 1 and setting.accumulation > 1)
    items.append(_item("gradients", width * trained / (1 if whole else world)))
    return items


def _optimizer(trained: int, setting: Setting) -> list[MemoryItem]:
    """Master weights, optimizer state and fp32 gradients where they are not on the host."""
    share = 1 if setting.stage == 0 else setting.world
    part = trained / share
    # Plain fp32 training keeps no master copy; ZeRO clones its partition in any precision.
    master = 0 if setting.precision == "fp32" and setting.stage == 0 else 4
    items = [_item("optimizer", (master + setting.state_bytes) * part)]
    if setting.stage == 0:
        if setting.precision != "fp32":
            items.append(_item("gradients in fp32", 4 * part, "step"))
            items.append(_item("flattening", 4 * part, "step"))
    elif setting.stage < 3:  # noqa: PLR2004
        items.append(_item("gradients in fp32", 4 * part, "step"))
        items.append(_item("flattening", setting.width * part, "step"))
    else:
        items.append(_item("gradients in fp32", 4 * min(part, SUB_GROUP), "step"))
    return items


def _buckets(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """Communication buffers: the reduce bucket, twice with overlap_comm, and gathered weights."""
    size = min(setting.bucket, trained)
    if setting.stage == 0:
        return [_item("buckets", setting.width * size if setting.world > 1 else 0, "backward")]
    copies = 2 if setting.overlap else 1
    items = [_item("buckets", setting.width * setting.bucket * copies)]
    if setting.stage == 3:  # noqa: PLR2004
        live = min(model.parameters, max(setting.max_live, model.largest_module))
        gathered = live if setting.world > 1 or setting.offloads_parameters else 0
        items.append(_item("gathered parameters", setting.width * gathered, "backward"))
        items.append(_item("gathered gradient", setting.width * model.largest_module, "backward"))
    return items


def _offloaded(model: ModelShape, trained: int, setting: Setting) -> list[MemoryItem]:
    """What offload puts into one host, and what pinning rounds up.

    Stages 1 and 2: fp32 master weights, a 16-bit staging copy and fp32 gradients of the rank's
    partition are pinned, Adam's two moments are not; accumulation keeps each gradient in host
    memory (16 bit). Stage 3: gradients (16 bit and fp32) and offloaded weights are pinned, fp32
    ones by sub-group.
    """
    ranks = setting.ranks_per_node
    part = -(-trained // setting.world)
    width = setting.width
    master, state = 4 * part * ranks, setting.state_bytes * part * ranks
    fp32_gradients = 4 * part * ranks
    staging = width * part * ranks
    items = [
        _item("master weights", master),
        _item("optimizer", state),
        _item("gradients in fp32", fp32_gradients),
        _item("16-bit staging", staging),
    ]
    if setting.stage < 3:  # noqa: PLR2004
        blocks = [4 * part, width * part, 4 * part]
        if setting.accumulation > 1:
            items.append(_item("accumulated gradients", width * trained * ranks / setting.world))
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

    workers: data loader workers of each rank; 256 MiB for each is an assumption.
    """
    trained = model.lora_parameters(setting.lora_rank) if setting.lora_rank else model.parameters
    device = _weights_and_gradients(model, setting)
    if not setting.offloads_optimizer:
        device += _optimizer(trained, setting)
    device += _buckets(model, trained, setting)
    device.append(_item("activations", activation_bytes(model, setting), "backward"))
    device.append(_item("logits", logits_bytes(model, setting), "backward"))
    ranks = setting.ranks_per_node
    host = [
        _item("processes", PROCESS_BYTES * ranks),
        _item("data loader workers", 256 * MIB * workers * ranks),
    ]
    if setting.offloads_optimizer:
        host += _offloaded(model, trained, setting)
    if not setting.on_gpu:
        host += [
            MemoryItem(name=f"{item.name} (ranks)", bytes=item.bytes * ranks, phase=item.phase)
            for item in device
        ]
        return Memory((), tuple(item for item in host if item.bytes))
    device.append(_item("CUDA context", CUDA_CONTEXT))
    if setting.world > 1:
        device.append(_item("NCCL", NCCL_BYTES))
    return Memory(
        tuple(item for item in device if item.bytes), tuple(item for item in host if item.bytes)
    )


def model_state_bytes(items: Iterable[MemoryItem]) -> int:
    """Weights, gradients and optimizer at the step: what DeepSpeed's estimators mean."""
    names = {"parameters", "gradients", "optimizer", "gradients in fp32", "master weights"}
    return sum(item.bytes for item in items if item.name in names)
