"""The shape of a model: enough of it to count parameters exactly and to size activations."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any

from dsdoctor.errors import UsageError


@dataclasses.dataclass(frozen=True, kw_only=True)
class ModelShape:
    """A dense decoder-only transformer.

    Attributes:
        name: what the user called it.
        family: `model_type` of the Hugging Face config (`gpt2`, `llama`, …) or `generic`.
        layers: transformer blocks.
        hidden: width of the residual stream.
        heads: query heads.
        kv_heads: key and value heads (fewer than heads = grouped-query attention).
        head_dim: width of one head.
        intermediate: inner width of the MLP.
        vocab: rows of the embedding.
        positions: rows of the learned position embedding, 0 with rotary embeddings.
        max_length: longest sequence that the model was made for.
        tied: output layer and embedding are one matrix.
        gated: the MLP has a gate (three matrices instead of two).
        qkv_bias, out_bias, mlp_bias: which linear layers have a bias.
        norm_bias: LayerNorm (weight and bias) instead of RMSNorm (weight).
        norms_per_layer: norms in one block.
        qk_norm: queries and keys are normalised per head.
        stated_parameters: the count that the user gave, where only a size was given.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    vocab: int
    intermediate: int
    kv_heads: int
    head_dim: int
    family: str = "generic"
    positions: int = 0
    max_length: int = 2048
    tied: bool = False
    gated: bool = True
    qkv_bias: bool = False
    out_bias: bool = False
    mlp_bias: bool = False
    norm_bias: bool = False
    norms_per_layer: int = 2
    qk_norm: bool = False
    stated_parameters: int | None = None

    @property
    def query_width(self) -> int:
        """Width of all query heads together."""
        return self.heads * self.head_dim

    @property
    def kv_width(self) -> int:
        """Width of all key (or value) heads together."""
        return self.kv_heads * self.head_dim

    @property
    def norm_parameters(self) -> int:
        """Parameters of one norm over the hidden width."""
        return self.hidden * (2 if self.norm_bias else 1)

    @property
    def layer_parameters(self) -> int:
        """Parameters of one block."""
        matrices = self.hidden * (2 * self.query_width + 2 * self.kv_width)
        matrices += (3 if self.gated else 2) * self.hidden * self.intermediate
        biases = 0
        if self.qkv_bias:
            biases += self.query_width + 2 * self.kv_width
        if self.out_bias:
            biases += self.hidden
        if self.mlp_bias:
            biases += self.hidden + self.intermediate * (2 if self.gated else 1)
        norms = self.norms_per_layer * self.norm_parameters
        norms += 2 * self.head_dim if self.qk_norm else 0
        return matrices + biases + norms

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the token embedding."""
        return self.vocab * self.hidden

    @property
    def parameters(self) -> int:
        """All parameters; a tied output layer counts once."""
        if self.stated_parameters is not None:
            return self.stated_parameters
        outer = self.embedding_parameters * (1 if self.tied else 2)
        outer += self.positions * self.hidden
        return outer + self.layers * self.layer_parameters + self.norm_parameters

    @property
    def largest_module(self) -> int:
        """Parameters of the largest single module: what ZeRO-3 must gather at once at least."""
        return max(self.embedding_parameters, self.hidden * self.intermediate)

    def lora_parameters(self, rank: int) -> int:
        """Trainable parameters of LoRA of this rank on all linear layers of the blocks.

        Each adapted matrix of shape (out, in) gets rank · (in + out) parameters (arXiv:2106.09685,
        section 4.1).
        """
        pairs = [
            (self.hidden, self.query_width),
            (self.hidden, self.kv_width),
            (self.hidden, self.kv_width),
            (self.query_width, self.hidden),
            *[(self.hidden, self.intermediate)] * (3 if self.gated else 2),
        ]
        return self.layers * rank * sum(wide + high for wide, high in pairs)


def _gpt2(name: str, layers: int, hidden: int, heads: int) -> ModelShape:
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


def _modern(
    name: str,
    family: str,
    numbers: tuple[int, int, int, int, int, int],
    *,
    head_dim: int | None = None,
    max_length: int = 4096,
    tied: bool = False,
) -> ModelShape:
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
        qk_norm=family == "qwen3",
        norms_per_layer=4 if family == "gemma2" else 2,
    )


def _presets() -> dict[str, ModelShape]:
    """Shapes as published with each model; not yet compared with the files on the hub."""
    shapes = [
        _gpt2("gpt2", 12, 768, 12),
        _gpt2("gpt2-medium", 24, 1024, 16),
        _gpt2("gpt2-large", 36, 1280, 20),
        _gpt2("gpt2-xl", 48, 1600, 25),
        _modern("llama-2-7b", "llama", (32, 4096, 32, 32, 11008, 32000)),
        _modern("llama-2-13b", "llama", (40, 5120, 40, 40, 13824, 32000)),
        _modern("llama-2-70b", "llama", (80, 8192, 64, 8, 28672, 32000)),
        _modern("llama-3-8b", "llama", (32, 4096, 32, 8, 14336, 128256), max_length=8192),
        _modern("llama-3-70b", "llama", (80, 8192, 64, 8, 28672, 128256), max_length=8192),
        _modern("mistral-7b", "mistral", (32, 4096, 32, 8, 14336, 32000), max_length=32768),
    ]
    # name, (layers, hidden, heads, kv heads, intermediate, vocabulary), tied
    qwen2: list[tuple[str, tuple[int, int, int, int, int, int], bool]] = [
        ("0.5b", (24, 896, 14, 2, 4864, 151936), True),
        ("1.5b", (28, 1536, 12, 2, 8960, 151936), True),
        ("3b", (36, 2048, 16, 2, 11008, 151936), True),
        ("7b", (28, 3584, 28, 4, 18944, 152064), False),
        ("14b", (48, 5120, 40, 8, 13824, 152064), False),
        ("32b", (64, 5120, 40, 8, 27648, 152064), False),
        ("72b", (80, 8192, 64, 8, 29568, 152064), False),
    ]
    shapes += [
        _modern(f"qwen2.5-{size}", "qwen2", numbers, max_length=32768, tied=tied)
        for size, numbers, tied in qwen2
    ]
    qwen3: list[tuple[str, tuple[int, int, int, int, int, int], bool]] = [
        ("0.6b", (28, 1024, 16, 8, 3072, 151936), True),
        ("1.7b", (28, 2048, 16, 8, 6144, 151936), True),
        ("4b", (36, 2560, 32, 8, 9728, 151936), True),
        ("8b", (36, 4096, 32, 8, 12288, 151936), False),
        ("14b", (40, 5120, 40, 8, 17408, 151936), False),
        ("32b", (64, 5120, 64, 8, 25600, 151936), False),
    ]
    shapes += [
        _modern(f"qwen3-{size}", "qwen3", numbers, head_dim=128, max_length=40960, tied=tied)
        for size, numbers, tied in qwen3
    ]
    gemma: list[tuple[str, str, tuple[int, int, int, int, int, int], int]] = [
        ("gemma-2b", "gemma", (18, 2048, 8, 1, 16384, 256000), 256),
        ("gemma-7b", "gemma", (28, 3072, 16, 16, 24576, 256000), 256),
        ("gemma-2-2b", "gemma2", (26, 2304, 8, 4, 9216, 256000), 256),
        ("gemma-2-9b", "gemma2", (42, 3584, 16, 8, 14336, 256000), 256),
        ("gemma-2-27b", "gemma2", (46, 4608, 32, 16, 36864, 256000), 128),
    ]
    shapes += [
        _modern(name, family, numbers, head_dim=head_dim, max_length=8192, tied=True)
        for name, family, numbers, head_dim in gemma
    ]
    return {shape.name: shape for shape in shapes}


PRESETS = _presets()

_ALIASES = {
    "llama-7b": "llama-2-7b",
    "llama-13b": "llama-2-13b",
    "llama-70b": "llama-2-70b",
    "llama-8b": "llama-3-8b",
    "mistral": "mistral-7b",
}
_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmbt])$", re.IGNORECASE)
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
#: A block has about 12 h² parameters (4 h² attention, 8 h² MLP).
_BLOCK_FACTOR = 12
#: Llama-2-7b has 4096 / 32 = 128 hidden units for each layer.
_HIDDEN_PER_LAYER = 128


def from_size(
    text: str, *, layers: int | None = None, hidden: int | None = None, heads: int | None = None
) -> ModelShape:
    """A model of which only the size is known; what is not given is guessed at Llama's proportions.

    >>> from_size("1.5B").parameters
    1500000000
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise UsageError(f"`{text}` is no model size, expected a number and K, M, B or T (`1.5B`)")
    count = round(float(match[1]) * _UNITS[match[2].lower()])
    if count <= 0:
        raise UsageError(f"`{text}` is no model size, expected more than 0 parameters")
    for name, given in (("layers", layers), ("hidden", hidden), ("heads", heads)):
        if given is not None and given <= 0:
            raise UsageError(f"{name} is {given}, expected more than 0")
    if hidden is None:
        if layers is None:
            hidden_float = (count * _HIDDEN_PER_LAYER / _BLOCK_FACTOR) ** (1 / 3)
        else:
            hidden_float = (count / (_BLOCK_FACTOR * layers)) ** 0.5
        hidden = max(64, round(hidden_float / 64) * 64)
    if layers is None:
        layers = max(1, round(count / (_BLOCK_FACTOR * hidden * hidden)))
    if heads is None:
        heads = max(1, hidden // 128)
    return ModelShape(
        name=text.strip(),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=max(1, hidden // heads),
        intermediate=max(1, round(8 * hidden / 3)),
        vocab=32000,
        max_length=4096,
        stated_parameters=count,
    )


def _positive(config: dict[str, Any], *keys: str) -> int:
    for key in keys:
        value = config.get(key)
        if isinstance(value, int) and not isinstance(value, bool) and value > 0:
            return value
    raise UsageError(f"the model config has no `{keys[0]}` that is a whole number above 0")


_TIED_BY_DEFAULT = {"gpt2": True, "gemma": True, "gemma2": True}
_MODERN = ("llama", "mistral", "qwen2", "qwen3", "gemma", "gemma2")


def from_config(config: dict[str, Any], name: str = "config.json") -> ModelShape:
    """The shape that a Hugging Face `config.json` describes.

    Defaults for absent keys are those of the family's configuration class in transformers.
    """
    family = config.get("model_type")
    if family == "gpt2":
        hidden = _positive(config, "n_embd", "hidden_size")
        heads = _positive(config, "n_head", "num_attention_heads")
        positions = _positive(config, "n_positions", "n_ctx")
        inner = config.get("n_inner")
        return dataclasses.replace(
            _gpt2(name, _positive(config, "n_layer", "num_hidden_layers"), hidden, heads),
            intermediate=inner if isinstance(inner, int) and inner > 0 else 4 * hidden,
            vocab=_positive(config, "vocab_size"),
            positions=positions,
            max_length=positions,
            tied=config.get("tie_word_embeddings", True) is not False,
        )
    if family not in _MODERN:
        raise UsageError(
            f"the model config is of type `{family}`, expected one of gpt2, {', '.join(_MODERN)}; "
            "give its size (`1.5B`) with layers, hidden and heads instead"
        )
    hidden = _positive(config, "hidden_size")
    heads = _positive(config, "num_attention_heads")
    default_dim = {"gemma": 256, "gemma2": 256, "qwen3": 128}.get(family, hidden // heads)
    attention_bias = config.get("attention_bias") is True
    return ModelShape(
        name=name,
        family=family,
        layers=_positive(config, "num_hidden_layers"),
        hidden=hidden,
        heads=heads,
        kv_heads=_positive(
            {"num_key_value_heads": heads} | _present(config), "num_key_value_heads"
        ),
        head_dim=_positive({"head_dim": default_dim} | _present(config), "head_dim"),
        intermediate=_positive(config, "intermediate_size"),
        vocab=_positive(config, "vocab_size"),
        max_length=_positive(
            {"max_position_embeddings": 2048} | _present(config), "max_position_embeddings"
        ),
        tied=bool(config.get("tie_word_embeddings", _TIED_BY_DEFAULT.get(family, False))),
        qkv_bias=family == "qwen2" or attention_bias,
        out_bias=attention_bias,
        mlp_bias=config.get("mlp_bias") is True,
        norms_per_layer=4 if family == "gemma2" else 2,
        qk_norm=family == "qwen3",
    )


def _present(config: dict[str, Any]) -> dict[str, Any]:
    """The keys that are not null."""
    return {key: value for key, value in config.items() if value is not None}


def resolve(
    text: str, *, layers: int | None = None, hidden: int | None = None, heads: int | None = None
) -> ModelShape:
    """What `--model` means: a preset, a size, or the path of a `config.json` or its folder."""
    key = text.strip().lower().replace("_", "-")
    key = _ALIASES.get(key, key)
    if key in PRESETS:
        return PRESETS[key]
    if _SIZE.match(text.strip()):
        return from_size(text, layers=layers, hidden=hidden, heads=heads)
    path = Path(text)
    if path.is_dir():
        path /= "config.json"
    if not path.is_file():
        raise UsageError(
            f"`{text}` is no preset, no size and no file, expected a `config.json`, a size such as "
            f"`1.5B`, or one of {', '.join(PRESETS)}"
        )
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"`{path}` could not be read as JSON: {error}") from error
    if not isinstance(config, dict):
        raise UsageError(f"`{path}` holds a {type(config).__name__}, expected a JSON object")
    name = str(config.get("_name_or_path") or path.parent.name or path.name)
    return from_config(config, name)
