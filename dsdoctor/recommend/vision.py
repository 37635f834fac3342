"""Shapes of vision-language models from their config: Qwen2-VL, Qwen2.5-VL, LLaVA, InternVL.

The shape is the language model's, and the vision tower is a tower of it. Defaults for absent keys
are those of the configuration classes of transformers.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

from dsdoctor.errors import UsageError
from dsdoctor.recommend.config_values import divided, part, positive_or, side
from dsdoctor.recommend.shape import ModelShape, Tower
from dsdoctor.recommend.tensors import Tensors, of_decoder

Config = Mapping[str, Any]
Text = Callable[[dict[str, Any], str], ModelShape]
#: Tokens of the largest image that Qwen2-VL's processor makes by default: 1280 of 28 by 28
#: pixels each.
_QWEN_IMAGE = 1280
#: What the classes of language models take for keys that a nested config leaves out.
_TEXT_DEFAULTS: dict[str, dict[str, int]] = {
    "llama": {
        "hidden_size": 4096,
        "intermediate_size": 11008,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 32000,
    },
    "mistral": {
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 32000,
    },
    "qwen2": {
        "hidden_size": 4096,
        "intermediate_size": 22016,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "vocab_size": 151936,
    },
}


def _language_model(config: Config, name: str, text: Text) -> ModelShape:
    """The language model that a part of the config describes."""
    inner = part(config, "text_config")
    family = inner.get("model_type") or "llama"
    known = {**_TEXT_DEFAULTS.get(family, {}), **inner, "model_type": family}
    if "tie_word_embeddings" in config:
        known["tie_word_embeddings"] = config["tie_word_embeddings"]
    return text(known, name)


def _tower_shape(
    family: str, layers: int, hidden: int, heads: int, inner: int, **more: Any
) -> ModelShape:
    known: dict[str, Any] = {
        "name": "vision tower",
        "family": family,
        "layers": layers,
        "hidden": hidden,
        "heads": heads,
        "kv_heads": heads,
        "head_dim": hidden // heads,
        "intermediate": inner,
        "vocab": 0,
        "gated": False,
        "qkv_bias": True,
        "out_bias": True,
        "mlp_bias": True,
        "norm_bias": True,
    }
    return ModelShape(**(known | more))


def _list_tower(found: Tensors, tower: ModelShape, *, fused: bool = False) -> None:
    """The blocks; `fused` is one matrix for queries, keys and values."""
    hidden, biased = tower.hidden, tower.norm_bias
    for _ in range(tower.layers):
        for wide in (3, 1) if fused else (1, 1, 1, 1):
            found.linear(hidden, wide * hidden, bias=tower.qkv_bias)
        found.mlp(hidden, tower.intermediate, gated=tower.gated, bias=True)
        found.norm(hidden, bias=biased)
        found.norm(hidden, bias=biased)


def _patches(vision: Config, patch: int, size: int) -> tuple[int, int]:
    """Side of a patch and number of patches of an image; the defaults are the class's."""
    patch, size = side(vision, "patch_size", patch), side(vision, "image_size", size)
    if size < patch:
        raise UsageError(
            f"`image_size` of the vision config is {size}, expected at least its `patch_size` "
            f"({patch})"
        )
    return patch, (size // patch) ** 2


def _qwen(config: Config, name: str, text: Text) -> ModelShape:
    """Any number of patches per image; four patches make one token."""
    vision = part(config, "vision_config")
    newer = config["model_type"] == "qwen2_5_vl"
    if isinstance(config.get("text_config"), dict):
        inner = {"tie_word_embeddings": config.get("tie_word_embeddings"), **config["text_config"]}
    else:
        inner = dict(config)
    model = text({**inner, "model_type": "qwen2"}, name)
    hidden = (
        positive_or(vision, "hidden_size", 1280)
        if newer
        else positive_or(vision, "embed_dim", 1280)
    )
    heads = positive_or(vision, "num_heads", 16)
    divided({"model_type": "vision"}, "hidden_size", hidden, heads)
    inner_width = (
        positive_or(vision, "intermediate_size", 3420)
        if newer
        else positive_or(vision, "mlp_ratio", 4) * hidden
    )
    merge = positive_or(vision, "spatial_merge_size", 2) ** 2
    pixels = 3 * positive_or(vision, "temporal_patch_size", 2)
    pixels *= positive_or(vision, "patch_size", 14) ** 2
    blocks = _tower_shape(
        "qwen2_5_vl_vision" if newer else "qwen2_vl_vision",
        positive_or(vision, "depth", 32),
        hidden,
        heads,
        inner_width,
        gated=newer,
        norm_bias=not newer,
    )
    found = of_decoder(model)
    found.add(pixels * hidden)
    _list_tower(found, blocks, fused=True)
    found.norm(hidden, bias=not newer)
    found.linear(merge * hidden, merge * hidden, bias=True)
    found.linear(merge * hidden, model.hidden, bias=True)
    # patches, their embedding, rotary tables, and the merger with its norm and GELU
    outer = 2 * pixels + 2 * hidden + 8 * blocks.head_dim + (8 if newer else 4) * hidden
    outer += 4 * hidden
    tower = Tower(name="vision tower", blocks=blocks, source="images", tokens=merge, outer=outer)
    shape = dataclasses.replace(model, towers=(tower,), image_tokens=_QWEN_IMAGE)
    return found.put_into(shape)


def _llava(config: Config, name: str, text: Text) -> ModelShape:
    """A CLIP tower: all tokens of its second-to-last layer but the first go to the model."""
    vision = part(config, "vision_config")
    model = _language_model(config, name, text)
    hidden = positive_or(vision, "hidden_size", 768)
    heads = positive_or(vision, "num_attention_heads", 12)
    divided({"model_type": "vision"}, "hidden_size", hidden, heads)
    layers = positive_or(vision, "num_hidden_layers", 12)
    patch, patches = _patches(vision, 32, 224)
    blocks = _tower_shape(
        "clip_vision_model", layers, hidden, heads, positive_or(vision, "intermediate_size", 3072)
    )
    bias = config.get("multimodal_projector_bias") is not False
    found = of_decoder(model)
    found.add(hidden, 3 * patch * patch * hidden, (patches + 1) * hidden)
    found.norm(hidden, bias=True)
    _list_tower(found, blocks)
    found.norm(hidden, bias=True)
    found.linear(hidden, model.hidden, bias=bias)
    found.linear(model.hidden, model.hidden, bias=bias)
    layer = config.get("vision_feature_layer", -2)
    used = layers + 1 + layer if isinstance(layer, int) and layer < 0 else layers
    tower = Tower(
        name="vision tower",
        blocks=dataclasses.replace(blocks, layers=max(1, min(layers, used))),
        source="images",
        tokens=(patches + 1) / patches,
        unit=patches + 1,
        outer=6 * hidden + 6 * model.hidden,
    )
    shape = dataclasses.replace(model, towers=(tower,), image_tokens=patches)
    return found.put_into(shape)


def _internvl(config: Config, name: str, text: Text) -> ModelShape:
    """InternViT on tiles; four of its tokens make one of the model's."""
    vision = part(config, "vision_config")
    model = _language_model(config, name, text)
    hidden = positive_or(vision, "hidden_size", 1024)
    heads = positive_or(vision, "num_attention_heads", 16)
    divided({"model_type": "vision"}, "hidden_size", hidden, heads)
    patch, patches = _patches(vision, 14, 448)
    biased = vision.get("attention_bias") is True
    rms = vision.get("norm_type") == "rms_norm"
    blocks = _tower_shape(
        "internvl_vision",
        positive_or(vision, "num_hidden_layers", 24),
        hidden,
        heads,
        positive_or(vision, "intermediate_size", 4096),
        qkv_bias=biased,
        norm_bias=not rms,
    )
    found = of_decoder(model)
    found.add(hidden, 3 * patch * patch * hidden, hidden)
    if vision.get("use_mask_token"):
        found.add(hidden)
    if vision.get("use_absolute_position_embeddings") is not False:
        found.add((patches + 1) * hidden)
    _list_tower(found, blocks)
    for _ in range(blocks.layers):
        found.add(hidden, hidden)  # scales of both halves
        if not biased:
            found.add(hidden)  # the output of attention still has a bias
        if vision.get("use_qk_norm"):
            found.add(hidden, hidden)
    if vision.get("use_mean_pooling") is False:
        found.norm(hidden, bias=True)
    merged = 4 * hidden
    found.norm(merged, bias=True)
    found.linear(merged, model.hidden, bias=True)
    found.linear(model.hidden, model.hidden, bias=True)
    tower = Tower(
        name="vision tower",
        blocks=blocks,
        source="images",
        tokens=4 * (patches + 1) / patches,
        unit=patches + 1,
        outer=8 * hidden + model.hidden,
    )
    shape = dataclasses.replace(model, towers=(tower,), image_tokens=patches // 4)
    return found.put_into(shape)


#: `model_type` to its reader.
READERS: dict[str, Callable[[Config, str, Text], ModelShape]] = {
    "qwen2_vl": _qwen,
    "qwen2_5_vl": _qwen,
    "llava": _llava,
    "internvl": _internvl,
}
