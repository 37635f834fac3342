"""The tensors that autograd saves in the forward pass through each kind of block.

Counted operator by operator, and compared with measurements, as in `activations`.
"""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape, Tower
from dsdoctor.recommend.traits import traits_of

#: Bytes for each score that eager attention keeps: softmax in fp32 and its 16-bit copy.
SCORE_BYTES = 6
#: The same of T5 since transformers 5.15: softmax and result of its dropout in 16 bits, and a mask.
T5_HALF_SCORES = 5
#: Bytes that a router keeps for each expert (softmax in fp32, 16-bit logits), and for each copy of
#: a token that it sends to an expert (four indices of eight bytes, weights).
ROUTER_BYTES, COPY_BYTES = 6, 38


def norm_bytes(
    model: ModelShape, setting: Setting, *, feeds_linear: bool = True, size: int | None = None
) -> int:
    """Bytes per token that one norm keeps, its output included.

    LayerNorm keeps its input and its output. RMSNorm of transformers casts its input to fp32 and
    keeps that, then the normalized input that the trained weight multiplies, and its output.
    Gemma's multiplies in fp32; T5's keeps its 16-bit input too. A frozen weight needs no normalized
    input. In fp32 training the casts are not copies.

    Args:
        model: the shape.
        setting: the option.
        feeds_linear: its output is kept as the input of a linear layer.
        size: width, None = the hidden width.
    """
    width, hidden = setting.width, size or model.hidden
    traits = traits_of(model.family)
    output = width * hidden if feeds_linear else 0
    if model.norm_bias:
        return width * hidden + output
    frozen = bool(setting.lora_rank)
    kept = 4 * hidden
    if not frozen:
        kept += (4 if traits.fp32_norm else width) * hidden
    if traits.residual_norm:
        kept += width * hidden
    return kept + output


def stores_scores(model: ModelShape, setting: Setting) -> bool:
    """Whether attention stores its scores: as requested, or as T5 does before transformers 5.15."""
    if setting.attention == "eager" or not traits_of(model.family).relative_bias:
        return setting.attention == "eager"
    known = setting.bias_kernel
    return setting.attention == "flash" if known is None else not known


def _attention_bytes(model: ModelShape, setting: Setting) -> int:
    """Bytes per token that a block's attention keeps: queries, keys, values, output, scores."""
    width, queries, keys = setting.width, model.query_width, model.kv_width
    traits = traits_of(model.family)
    stored = stores_scores(model, setting)
    fused = setting.attention == "flash" and width == 2  # noqa: PLR2004  # flash takes 16 bits only
    repeated = not fused and 1 < model.kv_heads < model.heads
    if model.latent is not None:
        kept = _latent_bytes(model, setting)
    else:
        kept = width * (2 * queries + 2 * (queries if repeated else keys))
    if model.qk_norm:
        each = 4 + (0 if setting.lora_rank else 4 if traits.fp32_norm else width)
        kept += each * (queries + keys)
    if traits.copied:
        kept += width * queries
    if stored:
        return kept + _score_bytes(model, setting) * model.heads * setting.sequence
    kept += 4 * model.heads  # log-sum-exp of each row of scores
    if setting.attention == "sdpa" and not traits.relative_bias:
        kept += width * setting.sequence  # the bias, one for all heads
    return kept


def _latent_bytes(model: ModelShape, setting: Setting) -> int:
    """Queries and keys in full, what keys and values are made from with its norm, values, output.

    The values are a part of the tensor that their up-projection returns, which also has the part of
    the keys without positions.
    """
    latent, width = model.latent, setting.width
    if latent is None:
        return 0
    plain = model.head_dim - latent.rotary
    per_head = 2 * model.head_dim + (plain + latent.value) + latent.value
    kept = width * model.heads * per_head
    for rank in (latent.query, latent.key):
        kept += norm_bytes(model, setting, size=rank) if rank else 0
    return kept


def bias_bytes(model: ModelShape, setting: Setting) -> int:
    """The position bias of a layer, a copy in the order that the kernel reads.

    Only the mask of padding, which an encoder adds to it, makes it different for each sequence.
    """
    traits = traits_of(model.family)
    if not traits.relative_bias or stores_scores(model, setting):
        return 0
    padded = setting.attention == "sdpa" and not traits.cross
    times = setting.micro_batch if padded else 1
    return setting.width * model.heads * times * setting.sequence**2


def _score_bytes(model: ModelShape, setting: Setting) -> int:
    half = setting.width == 2  # noqa: PLR2004
    traits = traits_of(model.family)
    kept = traits.score_bytes
    if traits.relative_bias and setting.bias_kernel:
        kept = T5_HALF_SCORES
    if kept:  # in fp32 everything except the mask's byte is twice as wide
        return kept if half else traits.fp32_score_bytes or 2 * kept - kept % 2
    return SCORE_BYTES if half else 4


def _mlp_tensors(model: ModelShape) -> int:
    """Tensors of the inner width: gate, up, activation and product; or what a plain MLP keeps."""
    return model.mlp_tensors or traits_of(model.family).mlp_tensors or (4 if model.gated else 2)


def mlp_bytes(model: ModelShape, setting: Setting, *, mixed: bool) -> int:
    """Bytes per token that one block's feed-forward part keeps.

    A token goes through `active_experts` experts, and its copies are sorted by expert: the input of
    each copy, four tensors of the expert's inner width (GPT-OSS, whose gate is clamped: seven), and
    its output before the weight of the router.
    """
    width = setting.width
    if not mixed:
        tensors = _mlp_tensors(model) - adapters_copy(setting)
        mask = 1 if traits_of(model.family).inner_mask else 0
        return (width * tensors + mask) * model.intermediate
    copies = model.active_experts
    each = (model.mlp_tensors or 4) * model.expert_width + 2 * model.hidden
    kept = width * (copies * each + 4 * model.shared_width)
    if model.router_fp32:  # a copy of its input; that of its weight is small
        kept += 4 * model.hidden
    return kept + ROUTER_BYTES * model.experts + COPY_BYTES * copies


def adapters_copy(setting: Setting) -> bool:
    """Whether adapters keep a copy of their input (after dropout, or cast to fp32)."""
    cast = setting.lora_fp32 and setting.width < 4  # noqa: PLR2004
    return bool(setting.lora_rank) and (setting.lora_dropout or cast)


def frozen_inputs(model: ModelShape, setting: Setting, left: float, *, later: bool) -> int:
    """Bytes of inputs of frozen layers that ZeRO-3's `linear` keeps in addition to adapters.

    It saves its input whether its weight needs a gradient or not (`setup_context` of
    `LinearFunctionForZeroStage3`), where torch's own keeps only the weight. Adapters that read a
    copy (dropout, fp32) do not keep the input itself: the outputs of both norms, and the product
    before the last layer of the MLP.

    Args:
        model: the shape.
        setting: the option.
        left: share of the backward pass that is still to come.
        later: the first weight gradient has been computed.
    """
    replaced = setting.partitions_weights and not setting.linear_views and not setting.quantized
    if not replaced or not adapters_copy(setting):
        return 0
    each = model.hidden if model.experts else 2 * model.hidden + model.intermediate
    block = setting.width * setting.micro_batch * setting.sequence * each
    if setting.checkpointing:  # those of the block that is computed again
        return block if later else 0
    return int(model.layers * block * left)


def _adapter_bytes(model: ModelShape, setting: Setting, *, mixed: bool) -> int:
    """Bytes per token that adapters keep of their inputs, in addition to what the block keeps.

    With dropout each adapter has a mask of one byte and a copy of its own; five of seven read the
    output of a norm (queries, keys, values, gate, up). Adapters in fp32 each cast their input.
    Without both, they share their inputs.
    """
    if not adapters_copy(setting):
        return 0
    readers = 3 + (0 if mixed else 2 if model.gated else 1)
    inputs = readers * model.hidden + model.query_width + (0 if mixed else model.intermediate)
    return _copy_bytes(setting) * inputs


def _copy_bytes(setting: Setting) -> int:
    """Bytes of an element that an adapter reads: its copy, and the mask of its dropout."""
    return (4 if setting.lora_fp32 else setting.width) + setting.lora_dropout


def layer_bytes(model: ModelShape, setting: Setting, *, mixed: bool = False) -> int:
    """What one block keeps for its backward pass, without recomputation.

    Args:
        model: the shape.
        setting: the option.
        mixed: a block with experts.
    """
    tokens = setting.micro_batch * setting.sequence
    traits = traits_of(model.family)
    parts = 3 if traits.cross else 2
    feeding = 0 if adapters_copy(setting) else min(parts, model.norms_per_layer)
    each = feeding * norm_bytes(model, setting)
    each += (model.norms_per_layer - feeding) * norm_bytes(model, setting, feeds_linear=False)
    each += _attention_bytes(model, setting) + mlp_bytes(model, setting, mixed=mixed)
    each += _adapter_bytes(model, setting, mixed=mixed)
    each += (setting.width * traits.hidden_tensors + traits.masks) * model.hidden
    kept = tokens * each + bias_bytes(model, setting)
    return kept + (_cross_bytes(model, setting) if traits.cross else 0)


def _cross_bytes(model: ModelShape, setting: Setting) -> int:
    """Attention to the encoder: queries and output per token, keys and values per encoder token.

    Scores have one length times the other, and so does the bias for padding, which T5 makes for
    each head.
    """
    width, tokens = setting.width, setting.micro_batch * setting.sequence
    traits = traits_of(model.family)
    length = next((tokens_of_tower(tower, setting) for tower in model.towers), setting.sequence)
    kept = width * tokens * model.query_width * (3 if traits.copied else 2)
    kept += width * setting.micro_batch * length * 2 * model.kv_width
    if adapters_copy(setting):  # of queries and output, and of keys and values
        read = tokens * (model.hidden + model.query_width)
        read += setting.micro_batch * length * 2 * model.hidden
        kept += _copy_bytes(setting) * read
    if stores_scores(model, setting):
        return kept + _score_bytes(model, setting) * model.heads * tokens * length
    if setting.attention == "sdpa":
        kept += width * tokens * length * (model.heads if traits.relative_bias else 1)
    return kept + 4 * model.heads * tokens


def tokens_of_tower(tower: Tower, setting: Setting) -> int:
    """Tokens of a tower for one sequence."""
    by = {"images": setting.image_tokens, "text": setting.sequence, "recording": 1}
    return int(tower.tokens * by[tower.source])


def setting_of_tower(tower: Tower, setting: Setting) -> Setting:
    """The setting for a tower; its sequences are the groups of tokens that attend to each other."""
    length = tokens_of_tower(tower, setting)
    unit = min(tower.unit or length, length)
    attention = setting.attention
    if attention == "sdpa" and tower.source != "text":  # images and recordings have no padding
        attention = "flash"
    return dataclasses.replace(
        setting,
        micro_batch=setting.micro_batch * -(-length // unit),
        sequence=unit,
        attention=attention,
    )


def tower_bytes(tower: Tower, setting: Setting) -> tuple[int, int]:
    """What a tower keeps until its backward pass, and what one of its blocks keeps in it."""
    length = tokens_of_tower(tower, setting)
    if not length:
        return 0, 0
    inner = setting_of_tower(tower, setting)
    tokens = setting.micro_batch * length
    block = layer_bytes(tower.blocks, inner)
    each = setting.width * tokens * tower.blocks.hidden if setting.checkpointing else block
    return tower.blocks.layers * each + tokens * tower.outer, block


def towers_bytes(model: ModelShape, setting: Setting) -> int:
    """What all towers keep until their backward pass."""
    return sum(tower_bytes(tower, setting)[0] for tower in model.towers)


def kept_bytes(model: ModelShape, setting: Setting) -> int:
    """What all blocks and the last norm keep until the backward pass, without the towers.

    With recomputation, a block keeps only its input.
    """
    tokens = setting.micro_batch * setting.sequence
    end = tokens * norm_bytes(model, setting)
    if setting.checkpointing:
        return end + model.layers * tokens * setting.width * model.hidden
    mixed = model.expert_layers
    plain = (model.layers - mixed) * layer_bytes(model, setting)
    return end + plain + (mixed * layer_bytes(model, setting, mixed=True) if mixed else 0)
