"""Parameter counts: against published figures, and against transformers itself.

PUBLISHED holds what the Hugging Face Hub shows as parameters of each model (`safetensors.total` of
its metadata), which KerasHub's preset tables (`gpt2_presets.py`, `llama_presets.py`,
`mistral_presets.py`, `gemma_presets.py`, `qwen_presets.py`) and `general.parameter_count` of the
GGUF conversions repeat.
"""

from __future__ import annotations

import dataclasses
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.recommend.mixtures import MIXTURES
from dsdoctor.recommend.models import (
    PRESETS,
    ModelShape,
    from_config,
    from_size,
    preset,
    resolve,
    written,
)

CHILDREN = Path(__file__).parent / "children"

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
    "llama-3.1-8b": 8_030_261_248,
    "llama-3.1-70b": 70_553_706_496,
    "llama-3.1-405b": 405_853_388_800,
    "llama-3.2-1b": 1_235_814_400,
    "llama-3.2-3b": 3_212_749_824,
    "mistral-7b": 7_241_732_096,
    "mistral-7b-v0.2": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,
    "mistral-nemo-12b": 12_247_782_400,
    "mistral-small-24b": 23_572_403_200,
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
    "gemma-3-270m": 268_098_176,
    "gemma-3-1b": 999_885_952,
}


def test_every_preset_has_a_published_count() -> None:
    assert set(PUBLISHED) == set(PRESETS)


@pytest.mark.parametrize(("name", "count"), PUBLISHED.items())
def test_parameters_are_exact(name: str, count: int) -> None:
    assert PRESETS[name].parameters == count


#: The same for mixtures of experts.
MIXED = {
    "mixtral-8x7b": 46_702_792_704,
    "qwen3-30b-a3b": 30_532_122_624,
    "qwen3-235b-a22b": 235_093_634_560,
    "gpt-oss-20b": 20_914_757_184,
    "gpt-oss-120b": 116_829_156_672,
}


def test_every_mixture_has_a_published_count() -> None:
    assert set(MIXED) == set(MIXTURES)


@pytest.mark.parametrize(("name", "count"), MIXED.items())
def test_parameters_of_mixtures_are_exact(name: str, count: int) -> None:
    shape = resolve(name)
    assert shape.parameters == count
    assert from_config(written(shape), name) == shape


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("Qwen/Qwen3-30B-A3B-Instruct-2507", "qwen3-30b-a3b"),
        ("mistralai/Mixtral-8x7B-Instruct-v0.1", "mixtral-8x7b"),
        ("openai/gpt-oss-20b", "gpt-oss-20b"),
    ],
)
def test_mixtures_are_found_by_the_names_of_the_hub(text: str, name: str) -> None:
    assert resolve(text).name == name


def hugging_face(shape: ModelShape, **changes: Any) -> dict[str, Any]:
    """The `config.json` that describes a shape."""
    if shape.family == "gpt2":
        config: dict[str, Any] = {
            "n_embd": shape.hidden,
            "n_head": shape.heads,
            "n_layer": shape.layers,
            "n_positions": shape.positions,
        }
    else:
        config = {
            "hidden_size": shape.hidden,
            "intermediate_size": shape.intermediate,
            "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads,
            "num_hidden_layers": shape.layers,
            "head_dim": shape.head_dim,
            "max_position_embeddings": shape.max_length,
        }
        if shape.family == "mistral":
            config["sliding_window"] = shape.window or None
    config |= {"model_type": shape.family, "vocab_size": shape.vocab}
    return config | {"tie_word_embeddings": shape.tied} | changes


#: Configs whose counts hang on a switch that the presets leave alone.
ODD = {
    "llama with biases": hugging_face(
        PRESETS["llama-3.2-1b"], attention_bias=True, mlp_bias=True, tie_word_embeddings=False
    ),
    "gpt2 with a narrow MLP": hugging_face(PRESETS["gpt2"], n_inner=1000),
    "gpt2 untied": hugging_face(PRESETS["gpt2"], tie_word_embeddings=False),
    "qwen3 with biases": hugging_face(PRESETS["qwen3-0.6b"], attention_bias=True),
    "gemma of its class's head_dim": {
        key: value for key, value in hugging_face(PRESETS["gemma-2b"]).items() if key != "head_dim"
    },
    "qwen3 of its class's head_dim": {
        key: value
        for key, value in hugging_face(PRESETS["qwen3-0.6b"]).items()
        if key != "head_dim"
    },
    "gemma tied by its class": {
        key: value
        for key, value in hugging_face(PRESETS["gemma-3-270m"]).items()
        if key != "tie_word_embeddings"
    },
}


@pytest.mark.train
def test_transformers_counts_the_same(tmp_path: Path) -> None:
    """Every preset and every odd config, built on the meta device; in a child, for it warns."""
    pytest.importorskip("transformers")
    configs = {name: hugging_face(shape) for name, shape in PRESETS.items()} | ODD
    (tmp_path / "configs.json").write_text(json.dumps(configs))
    done = subprocess.run(
        [sys.executable, str(CHILDREN / "counts.py"), str(tmp_path / "configs.json")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    counted = json.loads(done.stdout)
    assert set(counted) == set(configs)
    assert {name: from_config(config).parameters for name, config in configs.items()} == counted


@pytest.mark.parametrize("name", PRESETS)
def test_a_config_describes_the_same_shape_as_its_preset(name: str) -> None:
    shape = PRESETS[name]
    assert dataclasses.replace(from_config(hugging_face(shape)), name=name) == shape


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b"),
        ("meta-llama/Meta-Llama-3-8B", "llama-3-8b"),
        ("mistralai/Mistral-7B-Instruct-v0.3", "mistral-7b-v0.3"),
        ("mistralai/Mistral-7B-Instruct-v0.2", "mistral-7b-v0.2"),
        ("mistralai/Mistral-7B-v0.1", "mistral-7b"),
        ("Qwen/Qwen3-4B-Instruct-2507", "qwen3-4b"),
        ("google/gemma-2-9b-it", "gemma-2-9b"),
        ("openai-community/gpt2-xl", "gpt2-xl"),
        (" GPT2_XL ", "gpt2-xl"),
    ],
)
def test_names_of_the_hub_are_known(text: str, name: str) -> None:
    assert resolve(text) == PRESETS[name]


def test_other_versions_are_not_taken_for_a_preset() -> None:
    """Version 0.9 might have another vocabulary, as 0.3 has."""
    assert preset("mistral-7b-v0.9") is None
    assert preset("llama-4-scout") is None


def test_a_folder_that_holds_a_config_wins_over_the_preset_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert resolve("gpt2") == PRESETS["gpt2"]
    (tmp_path / "gpt2").mkdir()
    assert resolve("gpt2") == PRESETS["gpt2"]
    config = hugging_face(PRESETS["qwen3-0.6b"])
    (tmp_path / "gpt2" / "config.json").write_text(json.dumps(config))
    assert resolve("gpt2").family == "qwen3"


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


@pytest.mark.parametrize("text", ["125M", "350M", "1.5B", "7B", "13B", "70B", "400B"])
def test_a_guessed_shape_is_near_its_size(text: str) -> None:
    shape = from_size(text)
    guessed = dataclasses.replace(shape, stated_parameters=None)
    assert guessed.parameters == pytest.approx(shape.parameters, rel=0.35)
    assert shape.hidden == shape.heads * shape.head_dim


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("nope", "not a preset, a size or a file"),
        ("gpt2-x1", "the nearest preset is `gpt2-xl`"),
        ("lama-3-8b", "the nearest preset is `llama-3-8b`"),
        ("qwen/qwen2.5-7", "the nearest preset is `qwen2.5-7b`"),
        ("0B", "more than 0"),
        ("-1B", "not a model size"),
        ("1.5X", "not a model size"),
        ("1,5B", "not a model size"),
        ("1.5.B", "not a model size"),
        ("500000T", "at most 100T"),
        (" ", "`--model` is empty"),
    ],
)
def test_what_is_no_model_is_refused(text: str, words: str) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        resolve(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("{", "is not JSON"),
        ("[]", "contains a list"),
        (b"\xff\xfe", "is not JSON"),
        pytest.param("[" * 100_000, "is not JSON", id="100,000 nested lists"),
        ('{"model_type": "mamba"}', "type `mamba`"),
        ("{}", "has no `model_type`"),
        ('{"model_type": "llama", "hidden_size": "wide"}', "`hidden_size`"),
        ('{"model_type": "gpt2", "n_embd": 10, "n_head": 3}', "a multiple of `n_head` (3)"),
        pytest.param(
            '{"model_type":"llama","hidden_size":8,"num_attention_heads":4,"num_key_value_heads":3}',
            "a multiple of `num_key_value_heads` (3)",
            id="heads that the groups do not divide",
        ),
    ],
)
def test_files_that_describe_no_model_are_refused(
    tmp_path: Path, content: str | bytes, words: str
) -> None:
    path = tmp_path / "config.json"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    with pytest.raises(UsageError, match=re.escape(words)):
        resolve(str(path))


def test_folders_and_large_files_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=re.escape("contains no `config.json`")):
        resolve(str(tmp_path))
    weights = tmp_path / "model.safetensors"
    weights.write_bytes(b"\0" * (5 << 20))
    with pytest.raises(UsageError, match="larger than any model config"):
        resolve(str(weights))


def test_a_shape_beside_a_model_that_has_one_is_refused() -> None:
    with pytest.raises(UsageError, match=re.escape("`--layers` describes")):
        resolve("gpt2", layers=3)
    with pytest.raises(UsageError, match=re.escape("a multiple of heads (7)")):
        resolve("1B", hidden=100, heads=7)
