"""Published mixtures of experts, by the names that people use: the words of their `config.json`.

Only what determines sizes; the counts that follow are compared with the Hub's by tests/recommend.
"""

from __future__ import annotations

from typing import Any

Config = dict[str, Any]


def _qwen3(layers: int, hidden: int, heads: int, inner: int, width: int) -> Config:
    return {
        "model_type": "qwen3_moe",
        "num_hidden_layers": layers,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "moe_intermediate_size": width,
        "num_experts": 128,
        "num_experts_per_tok": 8,
        "num_attention_heads": heads,
        "num_key_value_heads": 4,
        "head_dim": 128,
        "vocab_size": 151936,
        "max_position_embeddings": 40960,
        "tie_word_embeddings": False,
        "decoder_sparse_step": 1,
        "norm_topk_prob": True,
    }


def _gpt_oss(layers: int, experts: int) -> Config:
    return {
        "model_type": "gpt_oss",
        "num_hidden_layers": layers,
        "hidden_size": 2880,
        "intermediate_size": 2880,
        "num_local_experts": experts,
        "num_experts_per_tok": 4,
        "num_attention_heads": 64,
        "num_key_value_heads": 8,
        "head_dim": 64,
        "vocab_size": 201088,
        "max_position_embeddings": 131072,
        "tie_word_embeddings": False,
    }


MIXTURES: dict[str, Config] = {
    "mixtral-8x7b": {
        "model_type": "mixtral",
        "num_hidden_layers": 32,
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_local_experts": 8,
        "num_experts_per_tok": 2,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
        "max_position_embeddings": 32768,
        "tie_word_embeddings": False,
    },
    "qwen3-30b-a3b": _qwen3(48, 2048, 32, 6144, 768),
    "qwen3-235b-a22b": _qwen3(94, 4096, 64, 12288, 1536),
    "gpt-oss-20b": _gpt_oss(24, 32),
    "gpt-oss-120b": _gpt_oss(36, 128),
}
