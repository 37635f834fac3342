"""Parameter counts of the presets.

The counts were written down from memory, not fetched; that the formula meets each to the last
digit is the evidence for both. They are still to be compared with the published files.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.recommend.models import PRESETS, from_config, from_size, resolve

PUBLISHED = {
    "gpt2": 124_439_808,
    "gpt2-medium": 354_823_168,
    "gpt2-large": 774_030_080,
    "gpt2-xl": 1_557_611_200,
    "llama-2-7b": 6_738_415_616,
    "llama-2-13b": 13_015_864_320,
    "llama-2-70b": 68_976_648_192,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
    "mistral-7b": 7_241_732_096,
    "qwen2.5-0.5b": 494_032_768,
    "qwen2.5-1.5b": 1_543_714_304,
    "qwen2.5-3b": 3_085_938_688,
    "qwen2.5-7b": 7_615_616_512,
    "qwen2.5-14b": 14_770_033_664,
    "qwen2.5-32b": 32_763_876_352,
    "qwen2.5-72b": 72_706_203_648,
    "qwen3-0.6b": 596_049_920,
    "qwen3-1.7b": 1_720_574_976,
    "qwen3-4b": 4_022_468_096,
    "qwen3-8b": 8_190_735_360,
    "qwen3-14b": 14_768_307_200,
    "qwen3-32b": 32_762_123_264,
    "gemma-2b": 2_506_172_416,
    "gemma-7b": 8_537_680_896,
    "gemma-2-2b": 2_614_341_888,
    "gemma-2-9b": 9_241_705_984,
    "gemma-2-27b": 27_227_128_320,
}


def test_every_preset_has_a_published_count() -> None:
    assert set(PUBLISHED) == set(PRESETS)


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_parameters_are_exact(name: str, count: int) -> None:
    assert PRESETS[name].parameters == count


def test_config_json_of_llama_3(tmp_path: Path) -> None:
    config = {
        "model_type": "llama",
        "hidden_size": 4096,
        "intermediate_size": 14336,
        "num_attention_heads": 32,
        "num_hidden_layers": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": False,
        "max_position_embeddings": 8192,
    }
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config))
    assert resolve(str(path)).parameters == PUBLISHED["llama-3-8b"]
    assert resolve(str(tmp_path)).max_length == 8192


def test_config_json_of_gpt2() -> None:
    config = {
        "model_type": "gpt2",
        "n_embd": 1600,
        "n_head": 25,
        "n_layer": 48,
        "n_positions": 1024,
        "vocab_size": 50257,
        "n_inner": None,
    }
    assert from_config(config).parameters == PUBLISHED["gpt2-xl"]


def test_size_keeps_the_stated_count_and_the_given_shape() -> None:
    shape = from_size("27B", layers=62, hidden=5376, heads=32)
    assert shape.parameters == 27_000_000_000
    assert (shape.layers, shape.hidden, shape.heads) == (62, 5376, 32)


@pytest.mark.parametrize("text", ["nope", "0B", "-1B"])
def test_what_is_no_model_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        resolve(text)


def test_unknown_type_and_broken_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="mixtral"):
        from_config({"model_type": "mixtral"})
    with pytest.raises(UsageError, match="hidden_size"):
        from_config({"model_type": "llama", "hidden_size": "wide"})
    path = tmp_path / "config.json"
    path.write_text("{")
    with pytest.raises(UsageError, match="JSON"):
        resolve(str(path))
    path.write_text("[]")
    with pytest.raises(UsageError, match="list"):
        resolve(str(path))
