"""Inputs of a model that runs on shapes: tokens, images or a recording, and labels.

Standard library; Python 3.8 and later.
"""

from __future__ import annotations

from typing import Any


def inputs_of(torch: Any, case: dict[str, Any], config: Any, head: str = "") -> dict[str, Any]:
    """Tokens, and labels if the model takes any; the values of ids and masks are real.

    A speech model gets its longest recording; a vision-language model the number of image tokens
    of the case, at the head of each sequence; a classifier a label for each sequence or image.

    Args:
        torch: the module.
        case: sizes of the pass.
        config: config of the model.
        head: name of its class.
    """
    dtype = torch.float32 if case.get("autocast") else getattr(torch, case["dtype"])
    make = {"dtype": dtype, "device": case.get("device", "meta")}
    shape = (case["batch"], case["sequence"])
    ids = torch.ones(shape, dtype=torch.long)
    if head.endswith("ForImageClassification"):
        seen = config if hasattr(config, "image_size") else config.vision_config
        size = seen.image_size
        height, width = size if isinstance(size, (list, tuple)) else (size, size)
        pixels = torch.zeros((shape[0], seen.num_channels, height, width), **make)
        return {"pixel_values": pixels, "labels": answers_of(torch, shape[0], config, make)}
    frames = frames_of(config)
    if frames is not None:
        ids = ids[:, : config.max_target_positions]
        features = torch.zeros((shape[0], *frames), **make)
        return {"input_features": features, "labels": ids, "decoder_input_ids": ids.clone()}
    given = {"input_ids": ids, "labels": ids.clone()}
    if head.endswith("ForSequenceClassification"):
        given["labels"] = answers_of(torch, shape[0], config, make)
    elif head.endswith("ForQuestionAnswering"):
        given.update(start_positions=ids[:, 0].clone(), end_positions=ids[:, 0].clone())
    if getattr(config, "is_encoder_decoder", False):
        given["decoder_input_ids"] = ids.clone()
    if case.get("image_tokens"):
        given.update(images_of(torch, case, config, ids, make))
    if case.get("mask", "ones") != "none":
        given["attention_mask"] = torch.ones(shape, dtype=torch.long)
        if case.get("mask") == "padded" and shape[1] > 1:
            given["attention_mask"][0, -1] = 0
    return given


def frames_of(config: Any) -> Any:
    """Sizes of the longest recording, in the order that the model takes; None = it takes none."""
    longest = getattr(config, "max_source_positions", None)
    if longest is not None and hasattr(config, "num_mel_bins"):
        return (config.num_mel_bins, 2 * longest)
    if longest is not None and hasattr(config, "input_feat_per_channel"):
        return (longest, config.input_feat_per_channel * config.input_channels)
    return None


def answers_of(torch: Any, count: int, config: Any, make: dict[str, Any]) -> Any:
    """The labels of a classifier: classes, or numbers if it has one output."""
    if config.num_labels == 1:
        return torch.zeros(count, **make)
    return torch.zeros(count, dtype=torch.long)


def images_of(
    torch: Any, case: dict[str, Any], config: Any, ids: Any, make: dict[str, Any]
) -> dict[str, Any]:
    """The pixels of the images; marks their tokens among the ids."""
    vision = getattr(config, "vision_config", None)
    token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
    if vision is None or token is None:
        raise LookupError("how a model of type " + config.model_type + " takes images is not known")
    count, batch = case["image_tokens"], case["batch"]
    if hasattr(vision, "spatial_merge_size"):  # patches of any number, with their grid
        merge = vision.spatial_merge_size
        ids[:, :count] = token
        grid = torch.tensor([[1, merge, merge * count]] * batch)
        width = 3 * getattr(vision, "temporal_patch_size", 1) * vision.patch_size**2
        patches = torch.zeros((batch * merge * merge * count, width), **make)
        return {
            "pixel_values": patches,
            "image_grid_thw": grid,
            "mm_token_type_ids": (ids == token).to(torch.int32),
        }
    size, patch = (
        value[0] if isinstance(value, (list, tuple)) else value
        for value in (vision.image_size, vision.patch_size)
    )
    each = int((size // patch) ** 2 * getattr(config, "downsample_ratio", 1.0) ** 2)
    each = getattr(config, "mm_tokens_per_image", None) or each  # Gemma 3 pools them
    images = max(1, count // each)
    if images * each > ids.shape[1]:
        raise ValueError(
            "an image takes " + str(each) + " tokens, and a sequence has " + str(ids.shape[1])
        )
    ids[:, : images * each] = token
    pixels = torch.zeros((batch * images, 3, size, size), **make)
    return {"pixel_values": pixels, "token_type_ids": (ids == token).to(torch.int64)}


def marked(given: dict[str, Any], config: Any) -> float:
    """The share of tokens that come from images."""
    token = getattr(config, "image_token_id", None) or getattr(config, "image_token_index", None)
    if token is None or "pixel_values" not in given:
        return 0.0
    return float((given["input_ids"] == token).float().mean())
