"""Experts, vision-language models, encoders with decoders: counts and activations by formula."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.recommend import measured
from dsdoctor.recommend.activations import moments
from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.models import UncoveredError, from_config
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import recommend
from dsdoctor.recommend.setting import Setting

CHILDREN = Path(__file__).parent / "children"
MEASURING = Path(__file__).parents[2] / "dsdoctor/probes/children"

#: Configs as published, and the parameters that the Hugging Face Hub shows for each.
PUBLISHED: dict[str, tuple[int, dict[str, Any]]] = {
    "mixtral-8x7b": (
        46_702_792_704,
        {
            "model_type": "mixtral", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
            "vocab_size": 32000, "num_local_experts": 8, "num_experts_per_tok": 2,
        },
    ),
    "qwen3-30b-a3b": (
        30_532_122_624,
        {
            "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144,
            "moe_intermediate_size": 768, "num_hidden_layers": 48, "num_attention_heads": 32,
            "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128,
            "num_experts_per_tok": 8,
        },
    ),
    "deepseek-v2-lite": (
        15_706_484_224,
        {
            "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
            "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
            "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_attention_heads": 16,
            "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None,
            "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
            "first_k_dense_replace": 1, "vocab_size": 102400,
        },
    ),
    "gpt-oss-20b": (
        20_914_757_184,
        {
            "model_type": "gpt_oss", "hidden_size": 2880, "intermediate_size": 2880,
            "num_hidden_layers": 24, "num_attention_heads": 64, "num_key_value_heads": 8,
            "head_dim": 64, "vocab_size": 201088, "num_local_experts": 32,
            "num_experts_per_tok": 4,
        },
    ),
    "flan-t5-xl": (
        2_849_757_184,
        {
            "model_type": "t5", "d_model": 2048, "d_ff": 5120, "d_kv": 64, "num_heads": 32,
            "num_layers": 24, "vocab_size": 32128, "feed_forward_proj": "gated-gelu",
            "tie_word_embeddings": False,
        },
    ),
    "bart-large": (
        406_291_456,
        {
            "model_type": "bart", "d_model": 1024, "encoder_ffn_dim": 4096,
            "decoder_ffn_dim": 4096, "encoder_layers": 12, "decoder_layers": 12,
            "encoder_attention_heads": 16, "decoder_attention_heads": 16, "vocab_size": 50265,
            "max_position_embeddings": 1024,
        },
    ),
    "whisper-large-v3": (
        1_543_490_560,
        {
            "model_type": "whisper", "d_model": 1280, "encoder_ffn_dim": 5120,
            "decoder_ffn_dim": 5120, "encoder_layers": 32, "decoder_layers": 32,
            "encoder_attention_heads": 20, "decoder_attention_heads": 20, "vocab_size": 51866,
            "max_source_positions": 1500, "max_target_positions": 448, "num_mel_bins": 128,
        },
    ),
    "qwen2-vl-7b": (
        8_291_375_616,
        {
            "model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "vocab_size": 152064, "tie_word_embeddings": False,
            "vision_config": {
                "depth": 32, "embed_dim": 1280, "mlp_ratio": 4, "num_heads": 16, "patch_size": 14,
            },
        },
    ),
    "qwen2.5-vl-7b": (
        8_292_166_656,
        {
            "model_type": "qwen2_5_vl", "hidden_size": 3584, "intermediate_size": 18944,
            "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
            "vocab_size": 152064, "tie_word_embeddings": False,
            "vision_config": {
                "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16,
                "out_hidden_size": 3584, "patch_size": 14,
            },
        },
    ),
    "llava-1.5-7b": (
        7_063_427_072,
        {
            "model_type": "llava",
            "text_config": {"model_type": "llama", "vocab_size": 32064},
            "vision_config": {
                "hidden_size": 1024, "image_size": 336, "intermediate_size": 4096,
                "num_attention_heads": 16, "num_hidden_layers": 24, "patch_size": 14,
            },
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLISHED)
def test_parameters_are_those_of_the_hub(name: str) -> None:
    count, config = PUBLISHED[name]
    assert from_config(config).parameters == count


def small(name: str, **changes: Any) -> dict[str, Any]:
    """The family of a published config, narrow and shallow."""
    return PUBLISHED[name][1] | changes


_NARROW = {
    "hidden_size": 1024, "num_attention_heads": 16, "num_key_value_heads": 4,
    "num_hidden_layers": 4, "tie_word_embeddings": False,
}  # fmt: skip
_TEXT = {
    "hidden_size": 1024, "intermediate_size": 2816, "num_hidden_layers": 4,
    "num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000,
}  # fmt: skip
MEASURED: dict[str, tuple[dict[str, Any], tuple[Setting, ...]]] = {
    "mixtral": (
        small("mixtral-8x7b", **_NARROW, intermediate_size=3584, head_dim=64),
        (Setting(micro_batch=2, sequence=1024), Setting(micro_batch=4, checkpointing=True)),
    ),
    "qwen3_moe": (
        small("qwen3-30b-a3b", **_NARROW, moe_intermediate_size=384, num_experts=64,
              decoder_sparse_step=2, vocab_size=4096),
        (Setting(micro_batch=2, sequence=1024), Setting(micro_batch=4, checkpointing=True)),
    ),
    "qwen2_moe": (
        small("mixtral-8x7b", **_NARROW, model_type="qwen2_moe", moe_intermediate_size=704,
              shared_expert_intermediate_size=2816, num_experts=32, num_experts_per_tok=4),
        (Setting(micro_batch=2), Setting(micro_batch=3, sequence=512, checkpointing=True)),
    ),
    "llama with adapters": (
        _TEXT | {"model_type": "llama", "tie_word_embeddings": False, "vocab_size": 4096},
        tuple(
            Setting(micro_batch=2, lora_rank=16, lora_dropout=drops, lora_fp32=fp32,
                    checkpointing=again)
            for drops in (False, True) for fp32 in (False, True) for again in (False, True)
        ),
    ),
    "qwen2 as a reward model": (
        _TEXT | {"model_type": "qwen2", "architectures": ["Qwen2ForSequenceClassification"],
                 "num_labels": 1},
        (Setting(micro_batch=4), Setting(micro_batch=4, checkpointing=True, precision="fp32")),
    ),
    "mistral without an output layer": (
        _TEXT | {"model_type": "mistral", "architectures": ["MistralModel"]},
        (Setting(micro_batch=4), Setting(checkpointing=True)),
    ),
    "deepseek_v2": (
        small("deepseek-v2-lite", hidden_size=1024, num_hidden_layers=4, intermediate_size=4096,
              moe_intermediate_size=704, n_routed_experts=32, vocab_size=4096),
        (Setting(micro_batch=2), Setting(micro_batch=4, checkpointing=True)),
    ),
    "deepseek_v3": (
        small("deepseek-v2-lite", model_type="deepseek_v3", q_lora_rank=768, hidden_size=1024,
              num_hidden_layers=4, intermediate_size=4096, moe_intermediate_size=704,
              n_routed_experts=32, n_group=4, topk_group=2, n_shared_experts=1, vocab_size=4096),
        (Setting(micro_batch=2), Setting(sequence=2048)),
    ),
    "gpt_oss": (
        small("gpt-oss-20b", hidden_size=1024, intermediate_size=768, num_hidden_layers=4,
              num_attention_heads=16, num_key_value_heads=4, vocab_size=8000),
        (Setting(micro_batch=2, attention="eager"),
         Setting(micro_batch=4, attention="eager", checkpointing=True)),
    ),
    "t5": (
        small("flan-t5-xl", d_model=768, d_ff=2048, num_heads=12, num_layers=4,
              tie_word_embeddings=True),
        (Setting(micro_batch=2, attention="sdpa"),
         Setting(micro_batch=2, sequence=512, attention="sdpa"),
         Setting(micro_batch=2, bias_kernel=True),
         Setting(micro_batch=8, sequence=512, bias_kernel=True, checkpointing=True),
         Setting(micro_batch=2, attention="eager", bias_kernel=True),
         Setting(micro_batch=2, attention="eager", bias_kernel=True, precision="fp32")),
    ),
    "bart": (
        small("bart-large", encoder_layers=4, decoder_layers=4),
        (Setting(micro_batch=2), Setting(micro_batch=2, attention="eager"),
         Setting(micro_batch=2, attention="sdpa")),
    ),
    "whisper": (
        small("whisper-large-v3", encoder_layers=4, decoder_layers=4),
        (Setting(micro_batch=2, sequence=448),
         Setting(micro_batch=8, sequence=256, checkpointing=True)),
    ),
    "qwen2_vl": (
        small("qwen2-vl-7b", **_TEXT, image_token_id=31000, vision_start_token_id=31001,
              video_token_id=31002, vision_end_token_id=31003,
              rope_scaling={"type": "mrope", "mrope_section": [8, 12, 12]},
              vision_config={"depth": 4, "embed_dim": 640, "mlp_ratio": 4, "num_heads": 8,
                             "hidden_size": 1024}),
        (Setting(micro_batch=2, image_tokens=512), Setting(sequence=2048, image_tokens=1280)),
    ),
    "qwen2_5_vl": (
        small("qwen2.5-vl-7b", **_TEXT, image_token_id=31000, vision_start_token_id=31001,
              video_token_id=31002, vision_end_token_id=31003,
              rope_scaling={"type": "mrope", "mrope_section": [8, 12, 12]},
              vision_config={"depth": 4, "hidden_size": 640, "intermediate_size": 1710,
                             "num_heads": 8, "out_hidden_size": 1024}),
        (Setting(micro_batch=2, image_tokens=512),
         Setting(micro_batch=2, image_tokens=512, checkpointing=True)),
    ),
    "llava": (
        small("llava-1.5-7b", text_config=_TEXT | {"model_type": "llama"},
              image_token_index=31000),
        (Setting(micro_batch=2, image_tokens=576),),
    ),
    "internvl": (
        {
            "model_type": "internvl", "image_token_id": 31000,
            "text_config": _TEXT | {"model_type": "qwen2"},
            "vision_config": {
                "model_type": "internvl_vision", "hidden_size": 1024, "intermediate_size": 4096,
                "num_hidden_layers": 4, "num_attention_heads": 16, "image_size": [448, 448],
                "patch_size": [14, 14], "attention_bias": True,
            },
            "tie_word_embeddings": False,
        },
        (Setting(micro_batch=2, image_tokens=256), Setting(micro_batch=1, image_tokens=512)),
    ),
}  # fmt: skip


@pytest.mark.train
def test_transformers_has_the_same_tensors_and_peaks(tmp_path: Path) -> None:
    """Every family on shapes: each tensor is listed, and no peak is more than 5 % too low."""
    asked = {
        name: {
            "config": config,
            "cases": [
                case
                for setting in settings
                for case in measured.cases(
                    setting, (setting.micro_batch,), (setting.checkpointing,)
                )
            ],
        }
        for name, (config, settings) in MEASURED.items()
    }
    (tmp_path / "asked.json").write_text(json.dumps(asked))
    done = subprocess.run(
        [sys.executable, str(CHILDREN / "families.py"), str(MEASURING), tmp_path / "asked.json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    off = {}
    for name, (config, settings) in MEASURED.items():
        shape = from_config(config, name)
        assert shape.parameters == sum(found[name]["tensors"]), name
        assert not shape.sizes or sorted(shape.sizes) == sorted(found[name]["tensors"]), name
        for setting, peak in zip(settings, found[name]["peaks"], strict=True):
            width = setting.width
            computed = max(one.bytes + width * one.gradient for one in moments(shape, setting))
            if not 0.95 < computed / peak < 1.15:  # too little is what runs out of memory
                off[f"{name} {setting}"] = computed / peak
    assert not off


@pytest.mark.parametrize(
    ("name", "changes", "words"),
    [
        ("mixtral-8x7b", {"num_experts_per_tok": 9}, "expected at most its 8 experts"),
        ("mixtral-8x7b", {"num_local_experts": -1}, "no `num_local_experts` that is a whole"),
        ("mixtral-8x7b", {"hidden_size": 10**12}, "expected at most 1000000000"),
        ("qwen3-30b-a3b", {"mlp_only_layers": 3}, "expected a list of layers"),
        ("deepseek-v2-lite", {"q_lora_rank": -4}, "expected a whole number from 0"),
        ("bart-large", {"encoder_attention_heads": 3}, "expected a multiple of 3"),
        ("whisper-large-v3", {"d_model": None}, "no `d_model` that is a whole"),
        ("qwen2-vl-7b", {"vision_config": None}, "no `vision_config` that is a JSON object"),
        ("llava-1.5-7b", {"text_config": []}, "no `text_config` that is a JSON object"),
        ("llava-1.5-7b", {"vision_config": {"image_size": 7, "patch_size": 14}}, "`image_size`"),
    ],
)
def test_a_config_with_absurd_numbers_is_refused(
    name: str, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=re.escape(words)):
        from_config(small(name, **changes))


@pytest.mark.parametrize(
    ("name", "head"),
    [("flan-t5-xl", "T5EncoderModel"), ("mixtral-8x7b", "MixtralForSequenceClassification")],
)
def test_classes_that_no_formula_covers_are_refused(name: str, head: str) -> None:
    with pytest.raises(UncoveredError, match=f"class `{head}`, which no formula covers; pass an"):
        from_config(small(name, architectures=[head]))


def test_an_image_is_counted_unless_told() -> None:
    shape = from_config(PUBLISHED["qwen2-vl-7b"][1], "qwen2-vl-7b")
    machine = machine_of(gpu_gib=80, count=8, host_gib=1000)

    def peak(count: int | None) -> int:
        options = PlanOptions(
            stage=3, offload="none", micro_batch=1, sequence=2048, image_tokens=count
        )
        return recommend(machine, shape, options).memory.options[0].gpu_bytes

    assert peak(0) < peak(None) == peak(1280) < peak(2000)
    with pytest.raises(UsageError, match="pass at most 2048"):
        peak(2049)
    text = from_config(PUBLISHED["mixtral-8x7b"][1], "mixtral")
    with pytest.raises(UsageError, match="not known to take images"):
        recommend(machine, text, PlanOptions(image_tokens=5))


def test_scores_of_t5_are_stored_before_transformers_5_15() -> None:
    shape = from_config(PUBLISHED["flan-t5-xl"][1], "flan-t5-xl")
    machine = machine_of(gpu_gib=80, count=8, host_gib=1000)
    asked: dict[str, Any] = {"stage": 2, "offload": "none", "micro_batch": 8, "sequence": 512}

    def sized(release: str | None) -> tuple[int, str]:
        options = PlanOptions(**asked, checkpointing=False, transformers=release)
        plan = recommend(machine, shape, options)
        told = next(reason.text for reason in plan.reasons if reason.subject == "attention")
        return plan.memory.options[0].gpu_bytes, told

    old, new = sized("5.14.1"), sized("5.15.0")
    assert sized(None)[0] == old[0] == sized("4.57.3")[0] > 1.2 * new[0]
    assert "before transformers 5.15.0" in old[1]
    assert "--transformers" in sized(None)[1]
    assert "a kernel takes the position bias" in new[1]


def test_attention_without_a_kernel_is_eager_unless_one_is_named() -> None:
    """Transformers has no SDPA for sinks and soft caps."""
    shape = from_config(PUBLISHED["gpt-oss-20b"][1], "gpt-oss-20b")
    machine = machine_of(gpu_gib=80, count=8, host_gib=1000)
    asked: dict[str, Any] = {"stage": 3, "offload": "none", "sequence": 4096, "micro_batch": 1}
    plan = recommend(machine, shape, PlanOptions(**asked, checkpointing=False))
    assert plan.attention == "eager"
    assert any("no SDPA for gpt_oss" in reason.text for reason in plan.reasons)
    named = recommend(machine, shape, PlanOptions(**asked, checkpointing=False, attention="flash"))
    assert named.attention == "flash"
    assert named.memory.options[0].gpu_bytes < plan.memory.options[0].gpu_bytes
