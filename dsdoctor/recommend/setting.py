"""One option to size: the settings of a launch that affect memory."""

from __future__ import annotations

import dataclasses

#: Default of `stage3_max_live_parameters` and of `stage3_max_reuse_distance`.
MAX_LIVE = 1_000_000_000
#: Default of `stage3_prefetch_bucket_size`.
PREFETCH = 50_000_000
#: Default of `sub_group_size`: ZeRO-3 steps this many parameters at once.
SUB_GROUP = 1_000_000_000


@dataclasses.dataclass(frozen=True, kw_only=True)
class Setting:
    """One option to size.

    Attributes:
        stage: ZeRO stage.
        offload: `none`, `optimizer` or `optimizer+parameters`.
        micro_batch, sequence: size of one pass on one GPU.
        image_tokens: tokens of a sequence that come from images.
        accumulation: passes before a step.
        world, nodes: ranks in all, and hosts.
        precision: `bf16`, `fp16` or `fp32`.
        attention: `flash` (a kernel that stores no scores), `sdpa` (the memory-efficient kernel
            that torch takes for batches with padding: keys and values of every query head, and a
            bias for each layer) or `eager`.
        bias_kernel: a kernel takes the position bias of T5's attention, so that no scores are
            stored (transformers 5.15); None = not known, so only with `sdpa`.
        checkpointing: activations of each block are recomputed.
        lora_rank: 0 = all parameters are trained.
        lora_dropout: adapters drop some of their input, for which they keep a copy and a mask.
        lora_fp32: adapters are in fp32 and cast their input (PEFT's default, where no engine casts
            the whole model).
        saved: parameters of modules that are trained in full together with adapters.
        saved_head: the embedding or the output layer is among them.
        saved_modules: their names, for a measurement.
        quantized: frozen weights are stored in 4 bits (QLoRA).
        fused_loss: the loss is computed with the output layer, piece by piece (Liger kernels), so
            that logits never exist as a whole.
        fused_copies: it adds up the gradient of the output layer from copies of it (Liger 0.6.2 to
            0.8.2).
        loads_first: the script loads the whole model before ZeRO-3 divides it.
        linear_views: autograd keeps the gathered weights of linear layers (such a script with
            DeepSpeed before 0.19.4).
        state_bytes: bytes of optimizer state per parameter, without the master copy (Adam 8,
            Lion 4, SGD 0).
        outer_bytes: additional bytes of state for a parameter that is not in a matrix of a block
            (Muon).
        step_bytes: temporaries of the optimizer's step for each parameter.
        master_width: bytes of a master weight, and of a gradient at the step (2 with
            `bf16_master_weights_and_grads`; 0 without DeepSpeed, whose weights have no copy).
        gradient_width: bytes of a gradient that is kept (`grad_accum_dtype`); None = as a weight.
        reduce_width: bytes of a gradient that is reduced (`communication_data_type`); None = as a
            weight.
        bucket: elements of `reduce_bucket_size`.
        overlap: `overlap_comm`, which doubles the bucket.
        buckets_first: buckets are made before the backward pass, not with its first gradient
            (DeepSpeed before 0.18.3), so they coexist with the logits.
        elementwise_overflow: gradients are searched for inf and NaN element by element, with
            temporaries of 11 bytes each (DeepSpeed before 0.19.6).
        max_live: elements of `stage3_max_live_parameters`.
        prefetch: elements of `stage3_prefetch_bucket_size`.
        reuse: elements of `stage3_max_reuse_distance`.
        reentrant: recomputation is reentrant, as in transformers before 5 unless asked otherwise.
        sub_group: elements of `sub_group_size`.
        secondary: ranks that share a second copy of the weights (`zero_hpz_partition_size`).
        pin_memory: offloaded tensors are pinned.
        on_gpu: False = ranks run on CPUs, and everything is host memory.
    """

    stage: int = 0
    offload: str = "none"
    micro_batch: int = 1
    sequence: int = 1024
    image_tokens: int = 0
    accumulation: int = 1
    world: int = 1
    nodes: int = 1
    precision: str = "bf16"
    attention: str = "flash"
    bias_kernel: bool | None = None
    checkpointing: bool = False
    lora_rank: int = 0
    lora_dropout: bool = True
    lora_fp32: bool = False
    saved: int = 0
    saved_head: bool = False
    saved_modules: tuple[str, ...] = ()
    quantized: bool = False
    fused_loss: bool = False
    fused_copies: bool = False
    loads_first: bool = False
    linear_views: bool = False
    state_bytes: float = 8
    outer_bytes: int = 0
    step_bytes: int = 0
    master_width: int = 4
    gradient_width: int | None = None
    reduce_width: int | None = None
    bucket: int = 200_000_000
    overlap: bool = True
    buckets_first: bool = False
    elementwise_overflow: bool = False
    max_live: int = MAX_LIVE
    prefetch: int = PREFETCH
    reuse: int = MAX_LIVE
    reentrant: bool = False
    sub_group: int = SUB_GROUP
    secondary: int = 1
    pin_memory: bool = True
    on_gpu: bool = True

    @property
    def width(self) -> int:
        """Bytes of a weight in the training precision."""
        return 4 if self.precision == "fp32" else 2

    @property
    def kept_width(self) -> int:
        """Bytes of a gradient that is kept until the step."""
        return self.gradient_width or self.width

    @property
    def sent_width(self) -> int:
        """Bytes of a gradient while it is reduced."""
        return self.reduce_width or self.width

    @property
    def offloads_optimizer(self) -> bool:
        """Whether the optimizer runs on the host."""
        return self.offload != "none"

    @property
    def offloads_parameters(self) -> bool:
        """Whether weights lie on the host."""
        return self.offload == "optimizer+parameters"

    @property
    def partitions_weights(self) -> bool:
        """Whether each rank holds a share of the weights only (ZeRO-3)."""
        return self.stage == 3  # noqa: PLR2004

    @property
    def loads_whole(self) -> bool:
        """Whether each rank has the whole model before ZeRO-3 divides it.

        transformers builds a model that it quantizes outside of `deepspeed.zero.Init`
        (`get_init_context` of modeling_utils.py, 4.51.3 and 5.23).
        """
        return self.loads_first or self.quantized

    @property
    def ranks_per_node(self) -> int:
        """Ranks on one host."""
        return max(1, self.world // self.nodes)
