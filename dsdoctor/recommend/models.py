"""Resolves `--model`: a preset, a size, or a Hugging Face `config.json`."""

from __future__ import annotations

import dataclasses
import difflib
import json
import re
from pathlib import Path
from typing import Any

from dsdoctor import reading
from dsdoctor.errors import UsageError
from dsdoctor.model.decode import DecodeError
from dsdoctor.recommend import experts, paired, vision
from dsdoctor.recommend.config_values import positive, positive_or
from dsdoctor.recommend.mixtures import MIXTURES
from dsdoctor.recommend.presets import ALIASES, MODERN, PRESETS, gpt2_shape, modern_shape
from dsdoctor.recommend.shape import ModelShape

__all__ = ["PRESETS", "ModelShape", "from_config", "from_size", "resolve"]

#: Rows of the embedding if only the size of a model is known: Llama 2's.
ASSUMED_VOCAB = 32000

#: Types for which the config is sufficient.
KNOWN = ("gpt2", *MODERN, *experts.READERS, *paired.READERS, *vision.READERS)

#: What helps where no formula covers a model.
OTHERWISE = (
    "pass an interpreter with torch and transformers (`--python`) to measure it with `--measure`, "
    "or pass its size (`1.5B`) with `--layers`, `--hidden`, `--heads` and `--vocab`"
)

_SIZE = re.compile(r"^(\d+(?:\.\d+)?)\s*([kmbt])$", re.IGNORECASE)
_OF_HUB = re.compile(r"\w[\w.-]{0,95}/\w[\w.-]{0,95}(?<!\.json)")
_NEARLY_A_SIZE = re.compile(r"^[-+]?[\d.,]+\s*\w{0,2}$")
_UNITS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
#: A block has about 12 h² parameters (4 h² attention, 8 h² MLP).
_BLOCK_FACTOR = 12
#: Llama-2-7b has 4096 / 32 = 128 hidden units for each layer.
_HIDDEN_PER_LAYER = 128
#: Small models (GPT-2, Qwen, Llama-3.2) share embedding and output layer, large ones do not.
_TIED_BELOW = 4e9
#: Larger than any model; a larger value is a wrong unit.
_MOST = 1e14
#: A config.json is a few KB; a file above this is something else (weights, perhaps).
_CONFIG_LIMIT = 4 << 20
#: No published model has more than a few hundred; the plan's sums list each.
MOST_LAYERS = 10_000
#: `sliding_window` of Mistral where a config has none (`MistralConfig` of transformers).
_WINDOW = 4096
_TIED_BY_DEFAULT = frozenset({"gpt2", "gemma", "gemma2", "gemma3_text"})
_HEAD_DIM_BY_DEFAULT = {"gemma": 256, "gemma2": 256, "gemma3_text": 256, "qwen3": 128}
#: Suffixes of a model's name that do not change its shape.
_SUFFIX = re.compile(r"-(hf|instruct|chat|it|base|\d{4})(?=-v\d|$)")


class UncoveredError(UsageError):
    """No formula covers the model; `what` says which model, without what helps."""

    def __init__(self, what: str) -> None:
        super().__init__(f"{what}; {OTHERWISE}")
        self.what = what


def from_size(
    text: str,
    *,
    layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    vocab: int | None = None,
) -> ModelShape:
    """A model of which only the size is known; the rest is guessed from Llama's proportions.

    >>> from_size("1.5B").parameters
    1500000000

    Raises:
        UsageError: the text is not a size, or the given shape is impossible.
    """
    match = _SIZE.match(text.strip())
    if match is None:
        raise UsageError(f"`{text}` is not a model size; expected, for example, `350M` or `1.5B`")
    parameters = float(match[1]) * _UNITS[match[2].lower()]
    count = round(parameters) if parameters <= _MOST else 0
    if count == 0:
        raise UsageError(f"`{text}` is not a model size; expected more than 0 and at most 100T")
    for name, given in (("layers", layers), ("hidden", hidden), ("heads", heads)):
        if given is not None and given <= 0:
            raise UsageError(f"{name} is {given}, expected more than 0")
    if hidden is None:
        if layers is None:
            hidden_float = (count * _HIDDEN_PER_LAYER / _BLOCK_FACTOR) ** (1 / 3)
        else:
            hidden_float = (count / (_BLOCK_FACTOR * layers)) ** 0.5
        unit = 64 if heads is None else heads
        hidden = max(unit, round(hidden_float / unit) * unit)
    if layers is None:
        layers = max(1, round(count / (_BLOCK_FACTOR * hidden * hidden)))
    if heads is None:
        heads = max(1, hidden // 128)
        while hidden % heads:
            heads -= 1
    if hidden % heads:
        raise UsageError(f"hidden is {hidden}, expected a multiple of heads ({heads})")
    return ModelShape(
        name=text.strip(),
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=hidden // heads,
        intermediate=max(1, round(8 * hidden / 3)),
        vocab=vocab or ASSUMED_VOCAB,
        max_length=4096,
        tied=count < _TIED_BELOW,
        stated_parameters=count,
    )


def _gpt2(config: dict[str, Any], name: str) -> ModelShape:
    hidden = positive(config, "n_embd", "hidden_size")
    heads = positive(config, "n_head", "num_attention_heads")
    if hidden % heads:
        raise UsageError(f"`n_embd` is {hidden}, expected a multiple of `n_head` ({heads})")
    positions = positive(config, "n_positions", "n_ctx")
    return dataclasses.replace(
        gpt2_shape(name, positive(config, "n_layer", "num_hidden_layers"), hidden, heads),
        intermediate=positive_or(config, "n_inner", 4 * hidden),
        vocab=positive(config, "vocab_size"),
        positions=positions,
        max_length=positions,
        tied=config.get("tie_word_embeddings") is not False,
    )


def _outputs(config: dict[str, Any]) -> int | None:
    """Outputs of the class that the config names; None = those of a language model.

    >>> _outputs({"architectures": ["LlamaForSequenceClassification"], "num_labels": 1})
    1
    >>> _outputs({"architectures": ["T5EncoderModel"]}), _outputs({})
    (0, None)
    """
    named = config.get("architectures")
    head = named[0] if isinstance(named, list) and named else None
    if not isinstance(head, str) or head.endswith("LMHeadModel"):
        return None
    if head.endswith("Model"):
        return 0
    if head.endswith("ForQuestionAnswering"):
        return 2
    if not head.endswith(("ForSequenceClassification", "ForTokenClassification")):
        return None
    names = config.get("id2label")
    return len(names) if isinstance(names, dict) else positive_or(config, "num_labels", 2)


def from_config(config: dict[str, Any], name: str = "config.json") -> ModelShape:
    """The shape that a Hugging Face `config.json` describes.

    Defaults for absent keys are those of the family's configuration class in transformers.

    Raises:
        UsageError: the family or its class is not known, or a number that the shape needs is
            missing.
    """
    outputs = _outputs(config)
    if outputs is None:
        return _of_family(config, name)
    if config.get("model_type") not in ("gpt2", *MODERN):
        raise UncoveredError(
            f"the model is of class `{config['architectures'][0]}`, which no formula covers"
        )
    return dataclasses.replace(_of_family(config, name), outputs=outputs, tied=False)


def _of_family(config: dict[str, Any], name: str) -> ModelShape:
    family = config.get("model_type")
    if family == "gpt2":
        return _gpt2(config, name)
    reader = experts.READERS.get(str(family)) or paired.READERS.get(str(family))
    if reader is not None:
        return reader(config, name)
    if (seeing := vision.READERS.get(str(family))) is not None:
        return seeing(config, name, from_config)
    if family not in MODERN:
        if family is None:
            raise UsageError(
                f"the model config has no `model_type`, expected one of {', '.join(KNOWN)}, or "
                "another type that the transformers of the job knows"
            )
        raise UncoveredError(f"the model is of type `{family}`, which no formula covers")
    hidden = positive(config, "hidden_size")
    heads = positive(config, "num_attention_heads")
    head_dim = positive_or(config, "head_dim", _HEAD_DIM_BY_DEFAULT.get(family, hidden // heads))
    kv_heads = positive_or(config, "num_key_value_heads", heads)
    if heads % kv_heads:
        raise UsageError(
            f"`num_attention_heads` is {heads}, "
            f"expected a multiple of `num_key_value_heads` ({kv_heads})"
        )
    layers = positive(config, "num_hidden_layers")
    numbers = (
        layers,
        hidden,
        heads,
        kv_heads,
        positive(config, "intermediate_size"),
        positive(config, "vocab_size"),
    )
    tied = config.get("tie_word_embeddings")
    bias = config.get("attention_bias") is True
    shape = modern_shape(
        name,
        family,
        numbers,
        head_dim=head_dim,
        max_length=positive_or(config, "max_position_embeddings", 2048),
        tied=family in _TIED_BY_DEFAULT if tied is None else bool(tied),
    )
    return dataclasses.replace(
        shape,
        qkv_bias=family == "qwen2" or bias,
        out_bias=bias,
        mlp_bias=config.get("mlp_bias") is True,
        window=_window(config),
    )


def _window(config: dict[str, Any]) -> int:
    """Tokens that each token attends to, where a config limits them in every layer; else 0.

    Qwen's models limit them in the later layers only, and only if asked to: counted for all.

    >>> _window({"model_type": "mistral"}), _window({"model_type": "qwen2", "sliding_window": 4096})
    (4096, 0)
    """
    family = config["model_type"]
    limited = family == "mistral" or config.get("use_sliding_window") is True
    if not limited or config.get("sliding_window", _WINDOW) is None:
        return 0
    return positive_or(config, "sliding_window", _WINDOW)


def preset(text: str) -> ModelShape | None:
    """The published model of this name, with or without owner (`meta-llama/`) and `-Instruct`.

    >>> preset("meta-llama/Llama-3.1-8B-Instruct").name, preset("nonsense")
    ('llama-3.1-8b', None)
    """
    key = text.strip().lower().replace("_", "-").rpartition("/")[2].removeprefix("meta-")
    for _ in range(3):
        name = ALIASES.get(key, key)
        if (found := PRESETS.get(name)) is not None:
            return found
        if (config := MIXTURES.get(name)) is not None:
            return from_config(config, name)
        key = _SUFFIX.sub("", key, count=1)
    return None


def resolve(
    text: str,
    *,
    layers: int | None = None,
    hidden: int | None = None,
    heads: int | None = None,
    vocab: int | None = None,
) -> ModelShape:
    """The model of `--model`: an existing file or folder, a size, or a preset.

    Raises:
        UsageError: it is not one of them, or it cannot be read.
    """
    given = {"--layers": layers, "--hidden": hidden, "--heads": heads, "--vocab": vocab}
    asked = [name for name, value in given.items() if value is not None]
    if not text.strip():
        raise UsageError(
            "`--model` is empty, expected a `config.json`, a preset or a size (`1.5B`)"
        )
    if _SIZE.match(text.strip()):
        return from_size(text, layers=layers, hidden=hidden, heads=heads, vocab=vocab)
    if asked:
        raise UsageError(
            f"`{asked[0]}` describes a model known only by its size, but "
            f"`{text}` defines its own shape; omit it"
        )
    known = _preset_named(text)
    if known is not None:
        return known
    name, config = _read(text)
    shape = from_config(config, name)
    if shape.layers > MOST_LAYERS:
        raise UsageError(f"`{text}` has {shape.layers} layers, expected at most {MOST_LAYERS}")
    return shape


def _preset_named(text: str) -> ModelShape | None:
    """The preset of this name, unless a folder of that name has a config."""
    known = None if "\\" in text or text.startswith((".", "/", "~")) else preset(text)
    return None if known is not None and Path(text, "config.json").is_file() else known


def config_of(text: str) -> tuple[str, dict[str, Any]] | None:
    """Name and content of the `config.json` for `--model`; None for a size.

    Raises:
        UsageError: it is neither a size nor a preset, and cannot be read.
    """
    if _SIZE.match(text.strip()):
        return None
    known = _preset_named(text)
    return _read(text) if known is None else (known.name, written(known))


def is_file(text: str) -> bool:
    """Whether `--model` is a file or folder: neither a size nor a preset."""
    return bool(text.strip()) and not _SIZE.match(text.strip()) and _preset_named(text) is None


def written(shape: ModelShape) -> dict[str, Any]:
    """The config of a preset, in the form that transformers reads.

    >>> from_config(written(PRESETS["qwen3-8b"]), "qwen3-8b") == PRESETS["qwen3-8b"]
    True
    """
    if (mixture := MIXTURES.get(shape.name)) is not None and shape.experts:
        return dict(mixture)
    if shape.family == "gpt2":
        return {
            "model_type": "gpt2",
            "n_layer": shape.layers,
            "n_embd": shape.hidden,
            "n_head": shape.heads,
            "n_positions": shape.positions,
            "vocab_size": shape.vocab,
        }
    window = {"sliding_window": shape.window or None} if shape.family == "mistral" else {}
    return {
        **window,
        "model_type": shape.family,
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocab,
        "max_position_embeddings": shape.max_length,
        "tie_word_embeddings": shape.tied,
    }


def _read(text: str) -> tuple[str, dict[str, Any]]:
    """The config of a model, and its name."""
    path = Path(text).expanduser()
    if path.is_dir():
        if not (path / "config.json").is_file():
            raise UsageError(f"`{text}` contains no `config.json`, expected the folder of a model")
        path /= "config.json"
    if not path.exists():
        raise UsageError(_unknown(text))
    try:
        if path.stat().st_size > _CONFIG_LIMIT:
            raise UsageError(f"`{text}` is larger than any model config, expected a `config.json`")
        content = reading.read_file(path, size=_CONFIG_LIMIT)
    except (OSError, DecodeError) as error:
        raise UsageError(
            f"`{text}` cannot be read: {reading.why(error)}; expected a `config.json`"
        ) from None
    try:
        config = json.loads(content.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise UsageError(f"`{text}` is not JSON ({error}), expected a `config.json`") from None
    if not isinstance(config, dict):
        raise UsageError(f"`{text}` contains a {type(config).__name__}, expected a JSON object")
    own = path.resolve()
    own = own.parent if own.name == "config.json" else own.with_suffix("")
    name = config.get("_name_or_path") or own.name or path.name
    return str(name), config


def _unknown(text: str) -> str:
    if _NEARLY_A_SIZE.match(text.strip()):
        return f"`{text}` is not a model size; expected, for example, `350M` or `1.5B`"
    key = text.lower().replace("_", "-").rpartition("/")[2]
    unknown = f"`{text}` is not a preset, a size or a file"
    if near := difflib.get_close_matches(key, [*PRESETS, *MIXTURES, *ALIASES], n=1):
        wanted = "pass that, a `config.json` or a size such as `1.5B`"
        return f"{unknown}; the nearest preset is `{near[0]}`; {wanted}"
    if _OF_HUB.fullmatch(text):  # nothing is fetched here, not even from a cache
        wanted = f"run `hf download {text} config.json` and pass the file that it prints"
        return f"`{text}` is not known by name; {wanted}, or a size such as `1.5B`"
    known = ", ".join([*PRESETS, *MIXTURES])
    return f"{unknown}; expected a `config.json`, a size such as `1.5B`, or one of {known}"
