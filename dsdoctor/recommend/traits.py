"""How the blocks of a family are implemented, as far as it affects what autograd keeps.

Read from the models of transformers 4.57 and 5, and compared with what those models allocate when
they run on shapes (docs/recommend.md, benchmarks/memory.md).
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True, kw_only=True)
class Traits:
    """Properties of a block that are not in its config.

    Attributes:
        fp32_norm: the norm multiplies in fp32 and so keeps one more fp32 tensor.
        residual_norm: the norm keeps its 16-bit input in addition to the fp32 copy.
        mlp_tensors: tensors of the inner width that the MLP keeps, 0 = 4 with a gate, else 2.
        hidden_tensors: 16-bit tensors of the hidden width that are kept in addition to all others.
        masks: masks of dropout, one byte for each element of the hidden width.
        inner_mask: dropout between the two halves of the MLP keeps a mask.
        score_bytes: bytes a score that eager attention keeps, 0 = softmax in fp32 and its copy.
        fp32_score_bytes: the same in fp32 training, 0 = all but a mask is twice as wide.
        eager: there is no kernel for its attention that stores no scores.
        relative_bias: each layer keeps a 16-bit bias of heads × s × s for the whole batch.
        cross: a second attention reads what the encoder made.
        copied: queries, keys, values and output are copied to be contiguous.
        loss_bytes: bytes for each logit where the loss is deepest: by default fp32
            log-probabilities and two fp32 gradients.
    """

    fp32_norm: bool = False
    residual_norm: bool = False
    mlp_tensors: int = 0
    hidden_tensors: int = 0
    masks: int = 0
    inner_mask: bool = False
    score_bytes: int = 0
    fp32_score_bytes: int = 0
    eager: bool = False
    relative_bias: bool = False
    cross: bool = False
    copied: bool = False
    loss_bytes: int = 12


#: GPT-2's eager softmax is in 16 bits; its dropout keeps a mask and a result.
_DROPPED_SCORES = 5
#: T5 before transformers 5.15 casts its scores to fp32: softmax 4, result of the dropout 2 and mask
#: 1. In fp32 training, and in eager attention since, the softmax is as wide as its result.
_T5_SCORES, _T5_FP32_SCORES = 7, 9
#: The loss is computed on 16-bit logits: log-probabilities and two gradients.
_HALF_LOSS = 6

_T5 = Traits(
    residual_norm=True,
    masks=2,
    inner_mask=True,
    score_bytes=_T5_SCORES,
    fp32_score_bytes=_T5_FP32_SCORES,
    relative_bias=True,
    loss_bytes=_HALF_LOSS,
)
_BART = Traits(masks=2, score_bytes=2, loss_bytes=_HALF_LOSS)
_WHISPER = Traits(copied=True, score_bytes=2, loss_bytes=_HALF_LOSS)
_PLAIN = Traits()

TRAITS = {
    "gpt2": Traits(mlp_tensors=5, masks=2, score_bytes=_DROPPED_SCORES),
    "gemma": Traits(fp32_norm=True),
    # scores and logits go through a soft cap, for which SDPA has no argument
    "gemma2": Traits(fp32_norm=True, score_bytes=8, fp32_score_bytes=8, eager=True, loss_bytes=14),
    "gemma3_text": Traits(fp32_norm=True),
    # sinks join the softmax, which is in 16 bits; its largest score is found first
    "gpt_oss": Traits(fp32_norm=True, score_bytes=2, eager=True),
    "t5": dataclasses.replace(_T5, masks=3, cross=True),
    "t5_encoder": _T5,
    "bart": dataclasses.replace(_BART, masks=3, cross=True),
    "bart_encoder": _BART,
    "whisper": dataclasses.replace(_WHISPER, cross=True),
    "whisper_encoder": _WHISPER,
    # `quick_gelu` is x · sigmoid(1.702 x) in Python
    "clip_vision_model": Traits(mlp_tensors=3),
    # both halves of a block end in a trained scale
    "internvl_vision": Traits(hidden_tensors=2),
    # one tensor for queries, keys and values stays next to the rotated copies; the outputs of all
    # images are joined into another
    "qwen2_vl_vision": Traits(mlp_tensors=3, hidden_tensors=2),
    "qwen2_5_vl_vision": Traits(hidden_tensors=2),
}


def traits_of(family: str) -> Traits:
    """The traits of a family; those of Llama if nothing is known.

    >>> traits_of("bart").cross, traits_of("llama").cross
    (True, False)
    """
    return TRAITS.get(family, _PLAIN)
