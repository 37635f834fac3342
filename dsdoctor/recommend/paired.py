"""Shapes of models with an encoder and a decoder from their config: T5, BART, Whisper.

The shape is the decoder's, and the encoder is a tower of it. Defaults for absent keys are those of
the configuration classes of transformers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from dsdoctor.recommend.config_values import divided, positive, positive_or
from dsdoctor.recommend.shape import ModelShape, Tower
from dsdoctor.recommend.tensors import Tensors, attention

Config = Mapping[str, Any]
#: Tensors of the inner width that T5's MLP keeps, by gating and activation.
_T5_TENSORS = {(True, "gelu"): 7, (False, "gelu"): 6}


def _t5(config: Config, name: str) -> ModelShape:
    hidden, heads = positive(config, "d_model"), positive(config, "num_heads")
    layers = positive(config, "num_layers")
    new = config["model_type"] == "mt5"
    words = str(config.get("feed_forward_proj") or ("gated-gelu" if new else "relu"))
    gated = words.startswith("gated-")
    activation = words.removeprefix("gated-")
    tied = config.get("tie_word_embeddings")
    buckets = positive_or(config, "relative_attention_num_buckets", 32)
    decoder = ModelShape(
        name=name,
        family="t5",
        layers=positive_or(config, "num_decoder_layers", layers),
        hidden=hidden,
        heads=heads,
        kv_heads=heads,
        head_dim=positive_or(config, "d_kv", 64),
        intermediate=positive(config, "d_ff"),
        vocab=positive(config, "vocab_size"),
        max_length=positive_or(config, "n_positions", 512),
        tied=tied is not False,
        gated=gated,
        mlp_tensors=_T5_TENSORS.get((gated, activation), 4 if gated else 2),
        norms_per_layer=3,
    )
    encoder = _encoder(decoder, "t5_encoder", layers=layers, norms_per_layer=2)
    found = Tensors()
    found.add(decoder.embedding_parameters)
    for stack, parts in ((encoder, 1), (decoder, 2)):
        for layer in range(stack.layers):
            for _ in range(parts):
                attention(found, stack)
            found.add(*([buckets * heads] if layer == 0 else []))
            found.mlp(hidden, stack.intermediate, gated=gated)
            for _ in range(parts + 1):
                found.norm(hidden)
        found.norm(hidden)
    if not decoder.tied:
        found.add(decoder.embedding_parameters)
    return found.put_into(_with_encoder(decoder, encoder, "text", outer=13 * hidden))


def _encoder(decoder: ModelShape, family: str, **more: Any) -> ModelShape:
    """The encoder's blocks: those of the decoder, except for the given fields."""
    shared = {
        name: getattr(decoder, name)
        for name in ("name", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "gated")
    }
    for name in ("mlp_tensors", "qkv_bias", "out_bias", "mlp_bias", "norm_bias"):
        shared[name] = getattr(decoder, name)
    return ModelShape(**(shared | {"family": family, "vocab": 0} | more))


def _with_encoder(
    decoder: ModelShape, encoder: ModelShape, source: str, *, outer: int, tokens: int = 1
) -> ModelShape:
    tower = Tower(name="encoder", blocks=encoder, source=source, tokens=tokens, outer=outer)
    return dataclasses.replace(decoder, towers=(tower,))


def _pair(config: Config, name: str, family: str, length: str) -> tuple[ModelShape, ModelShape]:
    """Decoder and encoder of BART and Whisper."""
    hidden = positive(config, "d_model")
    shapes = []
    for side in ("decoder", "encoder"):
        heads = positive(config, f"{side}_attention_heads")
        divided(config, "d_model", hidden, heads)
        shapes.append(
            ModelShape(
                name=name,
                family=family if side == "decoder" else f"{family}_encoder",
                layers=positive(config, f"{side}_layers"),
                hidden=hidden,
                heads=heads,
                kv_heads=heads,
                head_dim=hidden // heads,
                intermediate=positive(config, f"{side}_ffn_dim"),
                vocab=positive(config, "vocab_size") if side == "decoder" else 0,
                positions=positive(config, length),
                max_length=positive(config, length),
                tied=config.get("tie_word_embeddings") is not False,
                gated=False,
                qkv_bias=True,
                out_bias=True,
                mlp_bias=True,
                norm_bias=True,
                norms_per_layer=3 if side == "decoder" else 2,
            )
        )
    return shapes[0], shapes[1]


def _blocks(found: Tensors, stack: ModelShape, parts: int, *, key_bias: bool) -> None:
    hidden = stack.hidden
    for _ in range(stack.layers):
        for _ in range(parts):
            for bias in (True, key_bias, True, True):
                found.linear(hidden, hidden, bias=bias)
        found.mlp(hidden, stack.intermediate, gated=False, bias=True)
        for _ in range(parts + 1):
            found.norm(hidden, bias=True)


def _bart(config: Config, name: str) -> ModelShape:
    decoder, encoder = _pair(config, name, "bart", "max_position_embeddings")
    hidden = decoder.hidden
    found = Tensors()
    found.add(decoder.embedding_parameters)
    for stack, parts in ((encoder, 1), (decoder, 2)):
        found.add((decoder.positions + 2) * hidden)
        _blocks(found, stack, parts, key_bias=True)
        found.norm(hidden, bias=True)
    if not decoder.tied:
        found.add(decoder.embedding_parameters)
    return found.put_into(_with_encoder(decoder, encoder, "text", outer=7 * hidden))


def _whisper(config: Config, name: str) -> ModelShape:
    decoder, encoder = _pair(config, name, "whisper", "max_target_positions")
    hidden, frames = decoder.hidden, positive_or(config, "max_source_positions", 1500)
    bins = positive_or(config, "num_mel_bins", 80)
    found = Tensors()
    found.add(3 * bins * hidden, hidden, 3 * hidden * hidden, hidden, frames * hidden)
    _blocks(found, encoder, 1, key_bias=False)
    found.norm(hidden, bias=True)
    found.add(decoder.embedding_parameters, decoder.positions * hidden)
    _blocks(found, decoder, 2, key_bias=False)
    found.norm(hidden, bias=True)
    if not decoder.tied:
        found.add(decoder.embedding_parameters)
    # two convolutions (the first twice as long), GELU of both, and the last norm
    return found.put_into(
        _with_encoder(decoder, encoder, "recording", outer=16 * hidden, tokens=frames)
    )


#: `model_type` to its reader.
READERS: dict[str, Callable[[Config, str], ModelShape]] = {
    "t5": _t5,
    "mt5": _t5,
    "bart": _bart,
    "whisper": _whisper,
}
