"""What the passes keep: the tensors that autograd saves, and what they add up to at each moment.

The counts follow the models of transformers 4.5x and 5 operator by operator. They were compared
with the peaks of torch's own CUDA allocator and with every storage that a pass allocates
(benchmarks/memory.md); docs/recommend.md derives each of them.
"""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: Bytes for each logit where the loss is deepest: fp32 log-probabilities, and two fp32 gradients.
LOSS_BYTES = 12
#: The same with a soft cap on the logits, which keeps its 16-bit `tanh`.
CAPPED_LOSS_BYTES = 14
#: Tensors of the embedding's size when it is tied to the output layer: autograd keeps the gradient
#: of the one until that of the other is there, and adds them into a third.
TIED_GRADIENTS = 3
#: Families whose logits go through a soft cap.
CAPPED = frozenset({"gemma2"})
#: Families whose norms multiply in fp32 and so keep one more fp32 tensor.
FP32_NORMS = frozenset({"gemma", "gemma2", "gemma3_text"})
#: Families whose GELU is written in Python and keeps five tensors of the inner width.
PYTHON_GELU = frozenset({"gpt2"})
#: Bytes for each score that eager attention keeps: softmax in fp32 and its 16-bit copy. GPT-2 keeps
#: the 16-bit softmax, the mask of its dropout and what the dropout returns.
SCORE_BYTES, DROPPED_SCORE_BYTES = 6, 5


@dataclasses.dataclass(frozen=True, kw_only=True)
class Moment:
    """One moment of the passes.

    Attributes:
        name: `loss`, `output layer`, `last block`, `first block` or `embedding`.
        activations: bytes that the backward pass still needs.
        logits: bytes of logits, loss and their gradients.
        working: bytes of the recomputed block and of gradients on the way through it.
        gradient: elements of the weight gradient that is being made.
        finished: elements of the weight gradients that are made.
    """

    name: str
    activations: int
    logits: int = 0
    working: int = 0
    gradient: int = 0
    finished: int = 0

    @property
    def bytes(self) -> int:
        """All but the gradients of weights."""
        return self.activations + self.logits + self.working


def _norm_bytes(model: ModelShape, setting: Setting, *, feeds_linear: bool = True) -> int:
    """Bytes a token that one norm over the hidden width keeps, with its output.

    LayerNorm keeps its input and its output. RMSNorm of transformers casts its input to fp32 and
    keeps that, then the normalised input that the trained weight multiplies, and its output.
    Gemma's multiplies in fp32. A frozen weight needs no normalised input. In fp32 training the
    casts are not copies.
    """
    width, hidden = setting.width, model.hidden
    output = width * hidden if feeds_linear else 0
    if model.norm_bias:
        return width * hidden + output
    frozen = bool(setting.lora_rank)
    kept = 4 * hidden
    if not frozen:
        kept += (4 if model.family in FP32_NORMS else width) * hidden
    return kept + output


def _attention_bytes(model: ModelShape, setting: Setting) -> int:
    """Bytes a token of one block's attention: queries, keys, values, output and scores."""
    width, queries, keys = setting.width, model.query_width, model.kv_width
    fused = setting.attention == "flash" and width == 2  # noqa: PLR2004  # flash takes 16 bits only
    repeated = not fused and 1 < model.kv_heads < model.heads
    kept = width * (2 * queries + 2 * (queries if repeated else keys))
    if model.qk_norm:
        each = 4 + (0 if setting.lora_rank else 4 if model.family in FP32_NORMS else width)
        kept += each * (queries + keys)
    if setting.attention == "eager":
        return kept + _score_bytes(model, setting) * model.heads * setting.sequence
    kept += 4 * model.heads  # log-sum-exp of each row of scores
    if setting.attention == "sdpa":
        kept += width * setting.sequence  # the bias, one for all heads
    return kept


def _score_bytes(model: ModelShape, setting: Setting) -> int:
    if model.family in PYTHON_GELU:
        return DROPPED_SCORE_BYTES if setting.width == 2 else 9  # noqa: PLR2004
    each = SCORE_BYTES if setting.width == 2 else 4  # noqa: PLR2004
    return each + (setting.width if model.family in CAPPED else 0)


def _mlp_tensors(model: ModelShape) -> int:
    """Tensors of the inner width: gate, up, activation and product; or what a plain MLP keeps."""
    if model.gated:
        return 4
    return 5 if model.family in PYTHON_GELU else 2


def _mlp_bytes(model: ModelShape, setting: Setting, *, mixed: bool) -> int:
    """Bytes a token of one block's feed-forward part.

    A token goes through `active_experts` experts, and its copies are sorted by expert: the input of
    each copy, four tensors of the expert's inner width, and its output before and after the weight
    of the router.
    """
    width = setting.width
    if not mixed:
        tensors = _mlp_tensors(model) - _drops(setting)
        return width * tensors * model.intermediate
    copies = model.active_experts
    each = 4 * model.expert_width + 3 * model.hidden
    return width * (copies * each + 4 * model.shared_width) + 12 * model.experts


def _drops(setting: Setting) -> bool:
    """Adapters with dropout keep what it returns in place of their input, which is then let go."""
    return bool(setting.lora_rank) and setting.lora_dropout


def _adapter_bytes(model: ModelShape, setting: Setting, *, mixed: bool) -> int:
    """Bytes a token that adapters keep of their inputs beside what the block keeps anyway.

    With dropout each adapter has a mask of one byte and a copy of its own; five of seven read the
    output of a norm (queries, keys, values, gate, up). Without, they share their inputs.
    """
    if not _drops(setting):
        return 0
    readers = 3 + (0 if mixed else 2 if model.gated else 1)
    inputs = readers * model.hidden + model.query_width + (0 if mixed else model.intermediate)
    return (setting.width + 1) * inputs


def layer_bytes(model: ModelShape, setting: Setting, *, mixed: bool = False) -> int:
    """What the backward pass of one block keeps, without recomputation.

    Args:
        model: the shape.
        setting: the option.
        mixed: a block with experts.
    """
    tokens = setting.micro_batch * setting.sequence
    feeding = 0 if _drops(setting) else min(2, model.norms_per_layer)
    each = feeding * _norm_bytes(model, setting)
    each += (model.norms_per_layer - feeding) * _norm_bytes(model, setting, feeds_linear=False)
    each += _attention_bytes(model, setting) + _mlp_bytes(model, setting, mixed=mixed)
    each += _adapter_bytes(model, setting, mixed=mixed)
    if model.family in PYTHON_GELU:
        each += 2 * model.hidden  # masks of two dropouts
    return tokens * each


def kept_bytes(model: ModelShape, setting: Setting) -> int:
    """What all blocks and the last norm keep until the backward pass.

    With recomputation a block keeps its input alone.
    """
    tokens = setting.micro_batch * setting.sequence
    end = tokens * _norm_bytes(model, setting)
    if setting.checkpointing:
        return end + model.layers * tokens * setting.width * model.hidden
    mixed = model.expert_layers
    plain = (model.layers - mixed) * layer_bytes(model, setting)
    return end + plain + (mixed * layer_bytes(model, setting, mixed=True) if mixed else 0)


def _working_bytes(model: ModelShape, setting: Setting) -> int:
    """The block that is recomputed, and gradients of activations on their way through it."""
    tokens = setting.micro_batch * setting.sequence
    mixed = model.expert_layers > 0
    inner = model.intermediate
    if mixed:
        inner = max(inner, model.active_experts * model.expert_width)
    passing = setting.width * tokens * (inner + 3 * model.hidden)
    if setting.attention == "eager":
        passing = max(passing, 4 * tokens * model.heads * setting.sequence)
    if not setting.checkpointing:
        return passing
    return passing + layer_bytes(model, setting, mixed=mixed)


def logits_bytes(model: ModelShape, setting: Setting) -> int:
    """Logits and loss where they take most, at the start of the backward pass."""
    tokens = setting.micro_batch * setting.sequence
    if setting.fused_loss:
        return fused_loss_bytes(model, setting)
    return (CAPPED_LOSS_BYTES if model.family in CAPPED else LOSS_BYTES) * tokens * model.vocab


def fused_loss_bytes(model: ModelShape, setting: Setting) -> int:
    """What a loss fused with the output layer takes (Liger kernels).

    The tokens are cut into V / h pieces, rounded up to a power of two tokens each. One piece has
    its logits in 16 bit and in fp32; the gradients of the hidden states and of the output layer's
    weight are made in the forward pass already.
    """
    tokens = setting.micro_batch * setting.sequence
    pieces = -(-model.vocab // model.hidden)
    piece = min(tokens, 1 << (-(-tokens // pieces) - 1).bit_length())
    head = 0 if setting.lora_rank else model.embedding_parameters
    gradients = setting.width * (tokens * model.hidden + head)
    return (setting.width + 4) * piece * model.vocab + gradients


def moments(model: ModelShape, setting: Setting) -> tuple[Moment, ...]:
    """The moments at which a pass can be at its peak, in their order.

    The loss; the gradient of the output layer; the last block, where all activations are still
    there; the first block, where all gradients but the embedding's are; the embedding.
    """
    tokens = setting.micro_batch * setting.sequence
    kept = kept_bytes(model, setting)
    blocks = kept - tokens * _norm_bytes(model, setting)  # the last norm is done by then
    working = _working_bytes(model, setting)
    trained = model.lora_parameters(setting.lora_rank) if setting.lora_rank else model.parameters
    matrix = 0 if setting.lora_rank else model.largest_matrix
    head = 0 if setting.lora_rank else model.embedding_parameters
    logits = logits_bytes(model, setting)
    head_logits = min(logits, setting.width * tokens * model.vocab)
    tied = head if model.tied else 0
    first = blocks // max(1, model.layers) if not setting.checkpointing else 0
    return (
        Moment(name="loss", activations=kept, logits=logits),
        Moment(name="output layer", activations=kept, logits=head_logits, gradient=head),
        Moment(
            name="last block",
            activations=blocks,
            working=working,
            gradient=matrix + tied,
            finished=head - tied,
        ),
        Moment(
            name="first block",
            activations=first,
            working=working,
            gradient=matrix + tied,
            finished=max(0, trained - head),
        ),
        Moment(
            name="embedding",
            activations=0,
            working=setting.width * tokens * model.hidden,
            gradient=TIED_GRADIENTS * head if model.tied else head,
            finished=max(0, trained - head),
        ),
    )
