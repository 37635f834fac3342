"""The memory of the passes at each moment: what blocks keep, and what the backward pass adds.

The counts follow the models of transformers 4.5x and 5 operator by operator. They were compared
with the peaks of torch's own CUDA allocator and with every storage that a pass allocates
(benchmarks/memory.md); docs/recommend.md derives each of them.
"""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.blocks import (
    adapters_copy,
    bias_bytes,
    kept_bytes,
    layer_bytes,
    mlp_bytes,
    norm_bytes,
    setting_of_tower,
    stores_scores,
    tokens_of_tower,
    tower_bytes,
    towers_bytes,
)
from dsdoctor.recommend.saved import trained_head, trained_parameters
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape
from dsdoctor.recommend.traits import traits_of

#: Tensors of the embedding's size if it is tied to the output layer: autograd keeps the first
#: gradient until it has the second, and adds them into a third.
TIED_GRADIENTS = 3
#: Log-probabilities in fp32 and two gradients of them.
FP32_LOSS = 12


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
    if stores_scores(model, setting):
        passing = max(passing, 4 * tokens * model.heads * setting.sequence)
    passing = max(passing, _bias_backward(model, setting))
    return again + passing, 0 if setting.lora_rank else model.largest_matrix


def _bias_backward(model: ModelShape, setting: Setting) -> int:
    """The gradients of a position bias that is trained.

    The kernel returns one for each sequence. It is added up over the batch; a decoder masks the sum
    again; and autograd adds up what all layers made.
    """
    if not bias_bytes(model, setting) or setting.lora_rank:
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
    if stores_scores(model, setting):
        scores = 4 * tokens * model.heads * setting.sequence
        moments.append((max(0, scores - tokens * mlp_bytes(model, setting, mixed=True)), 0))
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
    weight are made in the forward pass already. Some releases add up the latter from a 16-bit
    product and its fp32 copy; in fp32 training all of them do, from the product alone.
    """
    tokens = setting.micro_batch * setting.sequence
    pieces = -(-model.vocab // model.hidden)
    piece = min(tokens, 1 << (-(-tokens // pieces) - 1).bit_length())
    copies = 4 if setting.precision == "fp32" else 2 + 4 if setting.fused_copies else 0
    made = (setting.width + 4) * piece * model.vocab + copies * trained_head(model, setting)
    return made + fused_gradient_bytes(model, setting)


def fused_gradient_bytes(model: ModelShape, setting: Setting) -> int:
    """The gradients that a fused loss leaves to the backward pass: hidden states, output layer."""
    tokens = setting.micro_batch * setting.sequence
    return setting.width * (tokens * model.hidden + trained_head(model, setting))


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
    blocks = kept - tokens * norm_bytes(model, setting)  # the last norm is done by then
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
        passing = setting.width * setting.micro_batch * tokens_of_tower(tower, setting)
        working = passing * (blocks.intermediate + 3 * blocks.hidden)
        working = max(working, _bias_backward(blocks, setting_of_tower(tower, setting)))
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
