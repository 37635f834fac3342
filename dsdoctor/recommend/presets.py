"""Shapes of published models, by the names that people use.

The figures are those of the `config.json` that each model was published with. Tests compare the
shapes with `transformers` itself, built on the meta device.
"""

from __future__ import annotations

import dataclasses

from dsdoctor.recommend.shape import ModelShape

#: layers, hidden, heads, kv heads, intermediate, vocabulary
Numbers = tuple[int, int, int, int, int, int]

#: Families whose block is "norm, attention, norm, gated MLP" with rotary positions.
MODERN = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2", "gemma3_text")
#: Families with a norm before and after both halves of a block.
_FOUR_NORMS = ("gemma2", "gemma3_text")
#: Families that normalize queries and keys of each head.
_QK_NORM = ("qwen3", "gemma3_text")


def gpt2_shape(name: str, layers: int, hidden: int, heads: int) -> ModelShape:
    """A GPT-2: learned positions, LayerNorm, biases everywhere, a plain MLP of 4 h."""
    return ModelShape(
        name=name,
        family="gpt2",
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate=4 * hidden,
        vocab=50257,
        positions=1024,
        max_length=1024,
        tied=True,
        gated=False,
        qkv_bias=True,
        out_bias=True,
        mlp_bias=True,
        norm_bias=True,
    )


def modern_shape(
    name: str,
    family: str,
    numbers: Numbers,
    *,
    head_dim: int | None = None,
    max_length: int = 4096,
    tied: bool = False,
) -> ModelShape:
    """A model of one of the MODERN families."""
    layers, hidden, heads, kv_heads, intermediate, vocab = numbers
    return ModelShape(
        name=name,
        family=family,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim or hidden // heads,
        intermediate=intermediate,
        vocab=vocab,
        max_length=max_length,
        tied=tied,
        qkv_bias=family == "qwen2",
        qk_norm=family in _QK_NORM,
        norms_per_layer=4 if family in _FOUR_NORMS else 2,
    )


#: name, family, numbers, head_dim (0 = hidden / heads), longest sequence, tied
_MODERN_PRESETS: tuple[tuple[str, str, Numbers, int, int, bool], ...] = (
    ("llama-2-7b", "llama", (32, 4096, 32, 32, 11008, 32000), 0, 4096, False),
    ("llama-2-13b", "llama", (40, 5120, 40, 40, 13824, 32000), 0, 4096, False),
    ("llama-2-70b", "llama", (80, 8192, 64, 8, 28672, 32000), 0, 4096, False),
    ("llama-3-8b", "llama", (32, 4096, 32, 8, 14336, 128256), 0, 8192, False),
    ("llama-3-70b", "llama", (80, 8192, 64, 8, 28672, 128256), 0, 8192, False),
    ("llama-3.1-8b", "llama", (32, 4096, 32, 8, 14336, 128256), 0, 131072, False),
    ("llama-3.1-70b", "llama", (80, 8192, 64, 8, 28672, 128256), 0, 131072, False),
    ("llama-3.1-405b", "llama", (126, 16384, 128, 8, 53248, 128256), 0, 131072, False),
    ("llama-3.2-1b", "llama", (16, 2048, 32, 8, 8192, 128256), 64, 131072, True),
    ("llama-3.2-3b", "llama", (28, 3072, 24, 8, 8192, 128256), 128, 131072, True),
    ("mistral-7b", "mistral", (32, 4096, 32, 8, 14336, 32000), 0, 32768, False),
    ("mistral-7b-v0.2", "mistral", (32, 4096, 32, 8, 14336, 32000), 0, 32768, False),
    ("mistral-7b-v0.3", "mistral", (32, 4096, 32, 8, 14336, 32768), 0, 32768, False),
    ("mistral-nemo-12b", "mistral", (40, 5120, 32, 8, 14336, 131072), 128, 131072, False),
    ("mistral-small-24b", "mistral", (40, 5120, 32, 8, 32768, 131072), 128, 32768, False),
    ("qwen2.5-0.5b", "qwen2", (24, 896, 14, 2, 4864, 151936), 0, 32768, True),
    ("qwen2.5-1.5b", "qwen2", (28, 1536, 12, 2, 8960, 151936), 0, 32768, True),
    ("qwen2.5-3b", "qwen2", (36, 2048, 16, 2, 11008, 151936), 0, 32768, True),
    ("qwen2.5-7b", "qwen2", (28, 3584, 28, 4, 18944, 152064), 0, 32768, False),
    ("qwen2.5-14b", "qwen2", (48, 5120, 40, 8, 13824, 152064), 0, 32768, False),
    ("qwen2.5-32b", "qwen2", (64, 5120, 40, 8, 27648, 152064), 0, 32768, False),
    ("qwen2.5-72b", "qwen2", (80, 8192, 64, 8, 29568, 152064), 0, 32768, False),
    ("qwen3-0.6b", "qwen3", (28, 1024, 16, 8, 3072, 151936), 128, 40960, True),
    ("qwen3-1.7b", "qwen3", (28, 2048, 16, 8, 6144, 151936), 128, 40960, True),
    ("qwen3-4b", "qwen3", (36, 2560, 32, 8, 9728, 151936), 128, 40960, True),
    ("qwen3-8b", "qwen3", (36, 4096, 32, 8, 12288, 151936), 128, 40960, False),
    ("qwen3-14b", "qwen3", (40, 5120, 40, 8, 17408, 151936), 128, 40960, False),
    ("qwen3-32b", "qwen3", (64, 5120, 64, 8, 25600, 151936), 128, 40960, False),
    ("gemma-2b", "gemma", (18, 2048, 8, 1, 16384, 256000), 256, 8192, True),
    ("gemma-7b", "gemma", (28, 3072, 16, 16, 24576, 256000), 256, 8192, True),
    ("gemma-2-2b", "gemma2", (26, 2304, 8, 4, 9216, 256000), 256, 8192, True),
    ("gemma-2-9b", "gemma2", (42, 3584, 16, 8, 14336, 256000), 256, 8192, True),
    ("gemma-2-27b", "gemma2", (46, 4608, 32, 16, 36864, 256000), 128, 8192, True),
    ("gemma-3-270m", "gemma3_text", (18, 640, 4, 1, 2048, 262144), 256, 32768, True),
    ("gemma-3-1b", "gemma3_text", (26, 1152, 4, 1, 6912, 262144), 256, 32768, True),
)


#: `sliding_window` of those that have one (v0.2 and v0.3 of Mistral-7B have none).
WINDOWS = {"mistral-7b": 4096}


def _presets() -> dict[str, ModelShape]:
    shapes = [
        gpt2_shape("gpt2", 12, 768, 12),
        gpt2_shape("gpt2-medium", 24, 1024, 16),
        gpt2_shape("gpt2-large", 36, 1280, 20),
        gpt2_shape("gpt2-xl", 48, 1600, 25),
    ]
    shapes += [
        modern_shape(
            name, family, numbers, head_dim=head_dim or None, max_length=longest, tied=tied
        )
        for name, family, numbers, head_dim, longest, tied in _MODERN_PRESETS
    ]
    return {
        shape.name: dataclasses.replace(shape, window=WINDOWS.get(shape.name, 0))
        for shape in shapes
    }


PRESETS = _presets()

#: Other names for the same shape.
ALIASES = {
    "gpt2-small": "gpt2",
    "llama-7b": "llama-2-7b",
    "llama-13b": "llama-2-13b",
    "llama-70b": "llama-2-70b",
    "llama-8b": "llama-3-8b",
    "llama-3.3-70b": "llama-3.1-70b",
    "mistral": "mistral-7b",
    "mixtral": "mixtral-8x7b",
    "mixtral-8x7b-v0.1": "mixtral-8x7b",
    "mistral-7b-v0.1": "mistral-7b",
    "qwen2-0.5b": "qwen2.5-0.5b",
    "qwen2-1.5b": "qwen2.5-1.5b",
    "qwen2-7b": "qwen2.5-7b",
    "qwen2-72b": "qwen2.5-72b",
}
