"""The memory of the passes: the tensors that autograd saves, added up for each moment.

The counts follow the models of transformers 4.5x and 5 operator by operator. They were compared
with the peaks of torch's own CUDA allocator and with every storage that a pass allocates
(benchmarks/memory.md); docs/recommend.md derives each of them.

Over 400 lines because each kind of block is counted here, operator by operator.
"""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.saved import trained_head, trained_parameters
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape, Tower
from dsdoctor.recommend.traits import traits_of

#: Tensors of the embedding's size if it is tied to the output layer: autograd keeps the first
#: gradient until it has the second, and adds them into a third.
TIED_GRADIENTS = 3
#: Bytes for each score that eager attention keeps: softmax in fp32 and its 16-bit copy.
SCORE_BYTES = 6
#: The same of T5 since transformers 5.15: softmax and result of its dropout in 16 bits, and a mask.
T5_HALF_SCORES = 5
#: Log-probabilities in fp32 and two gradients of them.
FP32_LOSS = 12
#: Bytes that a router keeps for each expert (softmax in fp32, 16-bit logits), and for each copy of
#: a token that it sends to an expert (four indices of eight bytes, weights).
ROUTER_BYTES, COPY_BYTES = 6, 38


@dataclasses.dataclass(frozen=True, kw_only=True)
class Moment:
    """One moment of the passes.

    Attributes:
        name: `loss`, `output layer`, `last norm`, `last block`, `first block`, `embedding`, or the
            name of a tower.
        activations: bytes that the backward pass still needs.
        logits: bytes of logits, loss and their gradients.
        working: bytes of the recomputed block and of gradients on the way through it.
        gradient: elements of the weight gradient that is being made.
        finished: elements of the weight gradients that are made.
        reduced: elements of the largest gradient that is reduced then, 0 = not known, or none.
        latest: elements of the gradient that was made last, 0 = not known, or small.
        waiting: elements of a gradient that waits beside ZeRO-3's bucket, in a measured pass.
        copied: elements that are copied to be reduced then; None = not known.
        fetched: elements of a reduced gradient that ZeRO-3 takes back from the host.
    """

    name: str
    activations: int
    logits: int = 0
    working: int = 0
    gradient: int = 0
    finished: int = 0
    reduced: int = 0
    latest: int = 0
    waiting: int = 0
    copied: int | None = None
    fetched: int = 0

    @property
    def bytes(self) -> int:
        """Everything except the gradients of weights."""
        return self.activations + self.logits + self.working


def _norm_bytes(
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


def _stores_scores(model: ModelShape, setting: Setting) -> bool:
    """Whether attention stores its scores: as requested, or as T5 does before transformers 5.15."""
    if setting.attention == "eager" or not traits_of(model.family).relative_bias:
        return setting.attention == "eager"
    known = setting.bias_kernel
    return setting.attention == "flash" if known is None else not known


def _attention_bytes(model: ModelShape, setting: Setting) -> int:
    """Bytes per token that a block's attention keeps: queries, keys, values, output, scores."""
    width, queries, keys = setting.width, model.query_width, model.kv_width
    traits = traits_of(model.family)
    stored = _stores_scores(model, setting)
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
        kept += _norm_bytes(model, setting, size=rank) if rank else 0
    return kept


def _bias_bytes(model: ModelShape, setting: Setting) -> int:
    """The position bias of a layer, a copy in the order that the kernel reads.

    Only the mask of padding, which an encoder adds to it, makes it different for each sequence.
    """
    traits = traits_of(model.family)
    if not traits.relative_bias or _stores_scores(model, setting):
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


def _mlp_bytes(model: ModelShape, setting: Setting, *, mixed: bool) -> int:
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
    replaced = setting.partitions_weights and not setting.linear_views and not setting.quantised
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
    each = feeding * _norm_bytes(model, setting)
    each += (model.norms_per_layer - feeding) * _norm_bytes(model, setting, feeds_linear=False)
    each += _attention_bytes(model, setting) + _mlp_bytes(model, setting, mixed=mixed)
    each += _adapter_bytes(model, setting, mixed=mixed)
    each += (setting.width * traits.hidden_tensors + traits.masks) * model.hidden
    kept = tokens * each + _bias_bytes(model, setting)
    return kept + (_cross_bytes(model, setting) if traits.cross else 0)


def _cross_bytes(model: ModelShape, setting: Setting) -> int:
    """Attention to the encoder: queries and output per token, keys and values per encoder token.

    Scores have one length times the other, and so does the bias for padding, which T5 makes for
    each head.
    """
    width, tokens = setting.width, setting.micro_batch * setting.sequence
    traits = traits_of(model.family)
    length = next((_length(tower, setting) for tower in model.towers), setting.sequence)
    kept = width * tokens * model.query_width * (3 if traits.copied else 2)
    kept += width * setting.micro_batch * length * 2 * model.kv_width
    if adapters_copy(setting):  # of queries and output, and of keys and values
        read = tokens * (model.hidden + model.query_width)
        read += setting.micro_batch * length * 2 * model.hidden
        kept += _copy_bytes(setting) * read
    if _stores_scores(model, setting):
        return kept + _score_bytes(model, setting) * model.heads * tokens * length
    if setting.attention == "sdpa":
        kept += width * tokens * length * (model.heads if traits.relative_bias else 1)
    return kept + 4 * model.heads * tokens


def _length(tower: Tower, setting: Setting) -> int:
    """Tokens of a tower for one sequence."""
    by = {"images": setting.image_tokens, "text": setting.sequence, "recording": 1}
    return int(tower.tokens * by[tower.source])


def _of_tower(tower: Tower, setting: Setting) -> Setting:
    """The setting for a tower; its sequences are the groups of tokens that attend to each other."""
    length = _length(tower, setting)
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
    length = _length(tower, setting)
    if not length:
        return 0, 0
    inner = _of_tower(tower, setting)
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
    end = tokens * _norm_bytes(model, setting)
    if setting.checkpointing:
        return end + model.layers * tokens * setting.width * model.hidden
    mixed = model.expert_layers
    plain = (model.layers - mixed) * layer_bytes(model, setting)
    return end + plain + (mixed * layer_bytes(model, setting, mixed=True) if mixed else 0)


def _block_backward(model: ModelShape, setting: Setting) -> tuple[int, int]:
    """The backward pass through a block: bytes on top of what is kept, and a gradient's elements.

    The bytes are the block that is recomputed, and gradients of activations on their way.
    """
    again = layer_bytes(model, setting, mixed=model.expert_layers > 0)
    again = again if setting.checkpointing else 0
    if model.expert_layers:
        working, gradient = _experts_backward(model, setting)
        return again + working, 0 if setting.lora_rank else gradient
    tokens = setting.micro_batch * setting.sequence
    passing = setting.width * tokens * (model.intermediate + 3 * model.hidden)
    if adapters_copy(
        setting
    ):  # the gradient of an adapter's copy, in addition to that of the layer's input
        each = 4 if setting.lora_fp32 else setting.width
        passing += each * tokens * (model.intermediate + model.hidden)
    if _stores_scores(model, setting):
        passing = max(passing, 4 * tokens * model.heads * setting.sequence)
    passing = max(passing, _bias_backward(model, setting))
    return again + passing, 0 if setting.lora_rank else model.largest_matrix


def _bias_backward(model: ModelShape, setting: Setting) -> int:
    """The gradients of a position bias that is trained.

    The kernel returns one for each sequence. It is added up over the batch; a decoder masks the sum
    again; and autograd adds up what all layers made.
    """
    if not _bias_bytes(model, setting) or setting.lora_rank:
        return 0
    each = setting.width * model.heads * setting.sequence**2
    return each * (setting.micro_batch + 3)


def _experts_backward(model: ModelShape, setting: Setting) -> tuple[int, int]:
    """The largest of four moments in the backward pass of a block with experts.

    (1) The copies' outputs are put back in order (DeepSeek: in fp32): gradient, zeros and result.
    (2) The gradient of the down projection. (3) The gradient of gate and up, which is twice as
    large; outputs, product, activation, gate and up of the copies are freed by then. With ZeRO-3
    that of the down projection is still there if the bucket cannot take it. (4) Attention, after
    everything of the experts is freed.
    """
    width, hidden = setting.width, model.hidden
    tokens = setting.micro_batch * setting.sequence
    copies, inner = model.active_experts, model.expert_width
    matrix = model.experts * inner * hidden
    passing = width * tokens * 3 * hidden
    if setting.lora_rank:
        matrix = 0
    freed = width * tokens * copies * (2 * inner)
    waits = matrix if setting.partitions_weights and matrix > setting.bucket else 0
    moments = [
        (passing + 3 * (4 if model.router_fp32 else width) * tokens * copies * hidden, 0),
        (passing + width * tokens * copies * max(inner, hidden), matrix),
        (max(0, passing - freed), max(0, waits + 2 * matrix - max(0, freed - passing) // width)),
    ]
    if _stores_scores(model, setting):
        scores = 4 * tokens * model.heads * setting.sequence
        moments.append((max(0, scores - tokens * _mlp_bytes(model, setting, mixed=True)), 0))
    return max(moments, key=lambda one: one[0] + width * one[1])


def _copied_beside_experts(model: ModelShape, setting: Setting) -> int | None:
    """Elements that ZeRO-3 copies to reduce them, if gradients of experts exceed its bucket.

    Those are reduced without a copy, and before they come the bucket has the rest of one block.
    None = not known, or up to a whole bucket.
    """
    matrix = model.experts * model.expert_width * model.hidden
    if not setting.partitions_weights or setting.lora_rank or 2 * matrix <= setting.bucket:
        return None
    rest = max(0, model.block_parameters // max(1, model.layers) - 3 * matrix)
    return min(setting.bucket, rest + (matrix if matrix <= setting.bucket else 0))


def logits_bytes(model: ModelShape, setting: Setting) -> int:
    """Logits and loss at their peak, at the start of the backward pass."""
    tokens = setting.micro_batch * setting.sequence
    if setting.fused_loss and model.outputs is None:
        return fused_loss_bytes(model, setting)
    each = traits_of(model.family).loss_bytes
    if setting.width > 2:  # noqa: PLR2004  # then 16-bit logits are fp32 too
        each = max(each, FP32_LOSS)
    return each * tokens * model.logits


def fused_loss_bytes(model: ModelShape, setting: Setting) -> int:
    """The memory of a loss fused with the output layer (Liger kernels).

    The tokens are cut into V / h pieces, rounded up to a power of two tokens each. One piece has
    its logits in 16 bit and in fp32; the gradients of the hidden states and of the output layer's
    weight are made in the forward pass already.
    """
    tokens = setting.micro_batch * setting.sequence
    pieces = -(-model.vocab // model.hidden)
    piece = min(tokens, 1 << (-(-tokens // pieces) - 1).bit_length())
    head = trained_head(model, setting)
    gradients = setting.width * (tokens * model.hidden + head)
    return (setting.width + 4) * piece * model.vocab + gradients


def moments(model: ModelShape, setting: Setting) -> tuple[Moment, ...]:
    """The moments at which a pass can reach its peak, in order.

    The loss; the gradient of the output layer; the last norm, which shows where logits are few; the
    last block, where all activations are still there; the first block, where all gradients but the
    embedding's are; the embedding.

    The last norm, an RMSNorm, has four fp32 tensors beside its incoming gradient: the gradient of
    its input so far, that of the mean square, twice the input, and the product of both.
    """
    tokens = setting.micro_batch * setting.sequence
    towers = towers_bytes(model, setting)
    kept = kept_bytes(model, setting) + towers
    blocks = kept - tokens * _norm_bytes(model, setting)  # the last norm is done by then
    working, matrix = _block_backward(model, setting)
    copied = _copied_beside_experts(model, setting) if model.expert_layers else None
    trained, head = trained_parameters(model, setting), trained_head(model, setting)
    logits = logits_bytes(model, setting)
    head_logits = min(logits, setting.width * tokens * model.logits)
    output = head if model.outputs is None else min(head, model.output_parameters)
    tied = head if model.tied else 0
    first = (blocks - towers) // max(1, model.layers) if not setting.checkpointing else 0
    return (
        Moment(name="loss", activations=kept, logits=logits),
        Moment(name="output layer", activations=kept, logits=head_logits, gradient=output),
        Moment(
            name="last norm",
            activations=kept,
            working=0 if model.norm_bias else (16 + setting.width) * tokens * model.hidden,
            gradient=tied,
            finished=output - tied,
            latest=output - tied,
        ),
        Moment(
            name="last block",
            activations=blocks,
            working=working,
            gradient=matrix + tied,
            finished=output - tied,
            copied=copied,
        ),
        Moment(
            name="first block",
            activations=first + towers,
            working=working,
            gradient=matrix + tied,
            finished=max(0, trained - head),
            copied=copied,
        ),
        *_tower_moments(model, setting, max(0, trained - head)),
        Moment(
            name="embedding",
            activations=0,
            working=setting.width * tokens * model.hidden,
            gradient=TIED_GRADIENTS * head if model.tied else head,
            finished=max(0, trained - head),
        ),
    )


def _tower_moments(model: ModelShape, setting: Setting, finished: int) -> list[Moment]:
    """The last block of each tower, when the whole tower is still allocated."""
    found = []
    for tower in model.towers:
        kept, block = tower_bytes(tower, setting)
        if not kept:
            continue
        blocks = tower.blocks
        passing = setting.width * setting.micro_batch * _length(tower, setting)
        working = passing * (blocks.intermediate + 3 * blocks.hidden)
        working = max(working, _bias_backward(blocks, _of_tower(tower, setting)))
        found.append(
            Moment(
                name=tower.name,
                activations=kept,
                working=working + (block if setting.checkpointing else 0),
                gradient=0 if setting.lora_rank else blocks.largest_matrix,
                finished=max(0, finished - (0 if setting.lora_rank else blocks.block_parameters)),
            )
        )
    return found
