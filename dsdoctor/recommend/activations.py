"""What the backward pass needs kept: activations and logits.

Korthikanti et al., arXiv:2205.05198, for models with biases and LayerNorm; a count of saved tensors
for gated models with RMSNorm.
"""

from __future__ import annotations

from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: Bytes for each logit: an fp32 copy and the gradient in 16 bit.
LOGIT_BYTES = 6


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
    The logits are taken to be gone before the first block is recomputed, so only what that block
    takes beyond them counts. Llama-3.1-8B at s = 32768 took 31 GiB with checkpointing and 240 GiB
    without, measured; 6 bytes a logit, of the 4 to 6 that are reported, meets both.
    """
    layer = activation_bytes_per_layer(model, setting)
    if not setting.checkpointing:
        return model.layers * layer
    tokens = setting.micro_batch * setting.sequence
    kept = setting.width * tokens * model.hidden * model.layers
    return kept + max(0, layer - logits_bytes(model, setting))
