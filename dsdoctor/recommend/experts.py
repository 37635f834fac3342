"""Shapes of mixtures of experts from their config: Mixtral, Qwen, DeepSeek, GPT-OSS.

Defaults for absent keys are those of the configuration classes of transformers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dsdoctor.errors import UsageError
from dsdoctor.recommend.config_values import divided, from_zero, positive, positive_or
from dsdoctor.recommend.shape import Latent, ModelShape
from dsdoctor.recommend.tensors import Tensors, attention

Config = Mapping[str, Any]
#: GPT-OSS clamps its gate: gate and up, both clamped, the sigmoid and two products.
_CLAMPED_TENSORS = 7


def _common(config: Config, name: str, **more: Any) -> ModelShape:
    hidden, heads = positive(config, "hidden_size"), positive(config, "num_attention_heads")
    if config.get("head_dim") is None and "head_dim" not in more:
        divided(config, "hidden_size", hidden, heads)
    kv_heads = positive_or(config, "num_key_value_heads", heads)
    divided(config, "num_attention_heads", heads, kv_heads)
    known: dict[str, Any] = {
        "name": name,
        "family": str(config["model_type"]),
        "layers": positive(config, "num_hidden_layers"),
        "hidden": hidden,
        "heads": heads,
        "kv_heads": kv_heads,
        "head_dim": positive_or(config, "head_dim", hidden // heads),
        "intermediate": positive(config, "intermediate_size"),
        "vocab": positive(config, "vocab_size"),
        "max_length": positive_or(config, "max_position_embeddings", 2048),
        "tied": bool(config.get("tie_word_embeddings")),
    }
    shape = ModelShape(**(known | more))
    if shape.active_experts > shape.experts:
        raise UsageError(
            f"`num_experts_per_tok` of the model config is {shape.active_experts}, "
            f"expected at most its {shape.experts} experts"
        )
    return shape


def _list(shape: ModelShape, dense: Callable[[int], bool], *, biased: bool = False) -> Tensors:
    """All tensors; the experts of a layer are in two of them, as in transformers 5."""
    found = Tensors()
    found.add(shape.embedding_parameters)
    hidden, experts, width = shape.hidden, shape.experts, shape.expert_width
    for layer in range(shape.layers):
        if shape.latent is not None:
            _latent_attention(found, shape, shape.latent)
        else:
            attention(found, shape)
        if biased:
            found.add(shape.heads)  # the sinks of attention
        if dense(layer):
            found.mlp(hidden, shape.intermediate, gated=True)
        else:
            found.add(experts * hidden, *([experts] if biased else []))
            found.add(experts * 2 * width * hidden, *([experts * 2 * width] if biased else []))
            found.add(experts * width * hidden, *([experts * hidden] if biased else []))
            if shape.shared_width:
                found.mlp(hidden, shape.shared_width, gated=True)
            if shape.shared_width and shape.family == "qwen2_moe":
                found.linear(hidden, 1)  # the gate of the shared expert
        found.add(hidden, hidden)
    found.norm(hidden)
    if not shape.tied:
        found.add(shape.embedding_parameters)
    return found


def _latent_attention(found: Tensors, shape: ModelShape, latent: Latent) -> None:
    hidden, queries = shape.hidden, shape.query_width
    if latent.query:
        found.linear(hidden, latent.query, bias=shape.qkv_bias)
        found.norm(latent.query)
        found.linear(latent.query, queries)
    else:
        found.linear(hidden, queries)
    found.linear(hidden, latent.key + latent.rotary, bias=shape.qkv_bias)
    found.norm(latent.key)
    found.linear(latent.key, shape.heads * (shape.head_dim - latent.rotary + latent.value))
    found.linear(shape.heads * latent.value, hidden, bias=shape.qkv_bias)


def _mixtral(config: Config, name: str) -> ModelShape:
    shape = _common(
        config,
        name,
        experts=positive_or(config, "num_local_experts", 8),
        active_experts=positive_or(config, "num_experts_per_tok", 2),
        expert_width=positive(config, "intermediate_size"),
    )
    return _list(shape, lambda _: False).put_into(shape)


def _qwen(config: Config, name: str) -> ModelShape:
    """Qwen2-MoE and Qwen3-MoE: a layer has experts by `decoder_sparse_step`."""
    third = config["model_type"] == "qwen3_moe"
    step = positive_or(config, "decoder_sparse_step", 1)
    plain = config.get("mlp_only_layers") or []
    if not isinstance(plain, list):
        raise UsageError(
            f"`mlp_only_layers` of the model config is {plain!r}; expected a list of layers"
        )

    def dense(layer: int) -> bool:
        return layer in plain or (layer + 1) % step != 0

    layers = positive(config, "num_hidden_layers")
    bias = config.get("attention_bias") is True
    shape = _common(
        config,
        name,
        experts=positive_or(config, "num_experts", 128 if third else 60),
        active_experts=positive_or(config, "num_experts_per_tok", 8 if third else 4),
        expert_width=positive_or(config, "moe_intermediate_size", 768 if third else 1408),
        shared_width=0 if third else positive_or(config, "shared_expert_intermediate_size", 5632),
        dense_layers=sum(dense(layer) for layer in range(layers)),
        qk_norm=third,
        qkv_bias=bias if third else config.get("qkv_bias") is not False,
        out_bias=bias and third,
    )
    return _list(shape, dense).put_into(shape)


def _deepseek(config: Config, name: str) -> ModelShape:
    """DeepSeek-V2 and V3: latent attention, plain first layers, shared experts."""
    rotary = positive_or(config, "qk_rope_head_dim", 64)
    width = positive_or(config, "moe_intermediate_size", 1407)
    latent = Latent(
        query=from_zero(config, "q_lora_rank", 0),
        key=positive_or(config, "kv_lora_rank", 512),
        rotary=rotary,
        value=positive_or(config, "v_head_dim", 128),
    )
    first = from_zero(config, "first_k_dense_replace", 0)
    heads = positive(config, "num_attention_heads")
    shape = _common(
        {**config, "num_key_value_heads": heads},
        name,
        head_dim=positive_or(config, "qk_nope_head_dim", 128) + rotary,
        experts=positive(config, "n_routed_experts"),
        active_experts=positive(config, "num_experts_per_tok"),
        expert_width=width,
        shared_width=width * from_zero(config, "n_shared_experts", 0),
        dense_layers=min(first, positive(config, "num_hidden_layers")),
        qkv_bias=config.get("attention_bias") is True,
        latent=latent,
        router_fp32=True,
    )
    return _list(shape, lambda layer: layer < first).put_into(shape)


def _gpt_oss(config: Config, name: str) -> ModelShape:
    bias = config.get("attention_bias") is not False
    shape = _common(
        config,
        name,
        experts=positive_or(config, "num_local_experts", 128),
        active_experts=positive_or(
            config,
            "num_experts_per_tok" if config.get("num_experts_per_tok") else "experts_per_token",
            4,
        ),
        expert_width=positive(config, "intermediate_size"),
        mlp_tensors=_CLAMPED_TENSORS,
        qkv_bias=bias,
        out_bias=bias,
    )
    return _list(shape, lambda _: False, biased=True).put_into(shape)


#: `model_type` to its reader.
READERS: dict[str, Callable[[Config, str], ModelShape]] = {
    "mixtral": _mixtral,
    "qwen2_moe": _qwen,
    "qwen3_moe": _qwen,
    "deepseek_v2": _deepseek,
    "deepseek_v3": _deepseek,
    "gpt_oss": _gpt_oss,
}
