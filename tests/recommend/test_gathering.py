"""What ZeRO-3 has gathered, against real engines of DeepSpeed 0.19.8.

Made on 2026-11-23 on stand-in libraries (tests/standin, torch 2.9.1+cu128, transformers 5.23.0):
elements of the parameters whose status is not `NOT_AVAILABLE` after the forward pass of the third
step, and peaks of torch's allocator (benchmarks/memory.md, third draw).
"""

from __future__ import annotations

import dataclasses

import pytest

from dsdoctor.recommend import memory
from dsdoctor.recommend.gathering import gathered, level_at, replay
from dsdoctor.recommend.models import PRESETS, from_config
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

ZERO_3 = Setting(stage=3, world=8, checkpointing=True)
SEEN = 10**9


def blocks_of(model: ModelShape, layers: int, **more: object) -> ModelShape:
    return dataclasses.replace(model, layers=layers, **more)  # type: ignore[arg-type]


MOONLIGHT = ModelShape(
    name="Moonlight-16B-A3B", family="deepseek_v3", layers=3, hidden=2048, heads=16, kv_heads=16,
    head_dim=192, intermediate=11264, vocab=163_840, experts=64, active_experts=6,
    expert_width=1408, shared_width=2816, dense_layers=1,
    modules=(
        (335_544_320,),
        *[(6_291_456,), (1_179_648,), (2_097_152,), (4_194_304,)], *[(23_068_672,)] * 3,
        *[
            (6_291_456,), (1_179_648,), (2_097_152,), (4_194_304,), (131_072,),
            (369_098_752, 184_549_376), *[(5_767_168,)] * 3,
        ] * 2,
        (335_544_320,),
    ),
    stacked=(13, 22),
)  # fmt: skip


def test_experts_exceed_the_limit_as_in_an_engine() -> None:
    """1.3092 billion elements, although `stage3_max_live_parameters` is one billion."""
    assert gathered(MOONLIGHT, ZERO_3)[0] == pytest.approx(1.3092e9, rel=0.01)


def test_the_experts_of_a_layer_are_gathered_together() -> None:
    """Both tensors of a layer of GPT-OSS-120B, and the one that comes next; biases are between."""
    config = {
        "model_type": "gpt_oss", "num_hidden_layers": 36, "hidden_size": 2880,
        "intermediate_size": 2880, "num_attention_heads": 64, "num_key_value_heads": 8,
        "vocab_size": 201_088, "max_position_embeddings": 4096, "head_dim": 64,
        "num_local_experts": 128, "num_experts_per_tok": 4,
    }  # fmt: skip
    levels = gathered(from_config(config, "gpt-oss-120b"), ZERO_3)[1]
    assert max(count for _, count in levels) >= 3 * 128 * 2880 * 2880


def test_weights_of_4_bits_count_as_they_are_stored() -> None:
    """Qwen2.5-14B with six layers: 1.0027 billion elements where recomputation is reentrant."""
    qwen = ModelShape(
        name="qwen", layers=6, hidden=5120, heads=40, kv_heads=8, head_dim=128,
        intermediate=13824, vocab=152_064,
    )  # fmt: skip
    setting = dataclasses.replace(ZERO_3, world=2, lora_rank=64, quantized=True)
    reentrant = dataclasses.replace(setting, reentrant=True)
    assert gathered(qwen, reentrant)[0] == pytest.approx(1.0027e9, rel=0.01)
    # otherwise 1.277 billion were allocated: autograd keeps those of all blocks
    assert gathered(qwen, setting)[0] == pytest.approx(1.277e9, rel=0.08)


def test_a_whole_model_in_4_bits_stays_gathered_without_reentrant_recomputation() -> None:
    llama = PRESETS["llama-3-70b"]
    setting = dataclasses.replace(ZERO_3, lora_rank=8, quantized=True)
    reentrant = dataclasses.replace(setting, reentrant=True)
    held = 2 * (gathered(llama, setting)[0] - gathered(llama, reentrant)[0])
    assert held > 0.4 * llama.block_parameters


def test_the_output_layer_comes_on_top_of_a_small_limit() -> None:
    """Llama-2-7B with four layers and a limit of 10^8: 6.23 GiB; 5.76 if the limit were kept."""
    model = blocks_of(PRESETS["llama-2-7b"], 4)
    setting = dataclasses.replace(
        ZERO_3, micro_batch=4, sequence=2048, bucket=50_000_000, max_live=10**8, overlap=False
    )
    need = memory.estimate(model, setting)
    outside = ("CUDA context", "NCCL", "workspaces", "fragmentation")
    predicted = memory.peak(item for item in need.gpu if item.name not in outside)
    assert 0.99 < predicted / memory.GIB / 6.227 < 1.05


def test_a_small_model_is_gathered_whole_and_a_large_one_up_to_the_limit() -> None:
    small, large = PRESETS["gpt2"], PRESETS["llama-3-8b"]
    assert gathered(small, ZERO_3)[0] >= 0.99 * small.parameters
    at_loss, levels, _ = gathered(large, ZERO_3)
    assert SEEN <= at_loss < 1.1 * SEEN
    assert level_at(levels, 0.0, 1 / large.layers) < 1.2 * SEEN
    # the embedding is gathered last
    assert level_at(levels, 1.0, 0.0) > level_at(levels, 0.0, 0.0) + 0.4 * SEEN


def test_what_autograd_keeps_is_counted_until_its_backward_pass() -> None:
    kept = dataclasses.replace(ZERO_3, checkpointing=False)
    less = gathered(MOONLIGHT, ZERO_3)[0]
    assert gathered(MOONLIGHT, kept)[0] > less
    viewed = dataclasses.replace(kept, linear_views=True)
    model = PRESETS["llama-3-8b"]
    at_loss, levels, _ = gathered(model, viewed)
    assert at_loss >= 0.999 * (model.parameters - model.embedding_parameters)
    assert levels[-1][1] < 0.5 * at_loss


def test_a_tied_output_layer_is_the_embedding() -> None:
    """Qwen2.5-0.5B in an engine of 8 ranks: 8.42 GiB; 8.9 if it counted twice."""
    model = PRESETS["qwen2.5-0.5b"]
    assert gathered(model, ZERO_3)[0] <= model.parameters


def test_without_partitions_nothing_is_gathered() -> None:
    assert gathered(PRESETS["gpt2"], Setting(stage=2, world=8)) == (0, (), 0)
    assert gathered(PRESETS["gpt2"], Setting(stage=3, world=1)) == (0, (), 0)


def test_a_replay_ends_empty_and_never_loses_count() -> None:
    loss, levels, _ = replay(((5,), (3, 4), (2,)), 6, 2, 6)
    assert loss >= 2
    assert all(count >= 0 for _, count in levels)
    assert [share for share, _ in levels] == sorted(share for share, _ in levels)


def test_a_weight_that_autograd_keeps_is_gathered_a_second_time() -> None:
    """Released after its forward pass, it is there twice in its backward pass."""
    modules = ((6,), (2,), (2,), (6,))
    plain = replay(modules, 100, 3, 0)[1]
    twice = replay(modules, 100, 3, 0, frozenset({1, 2}))[1]
    assert [count - less for (_, count), (_, less) in zip(twice, plain, strict=True)] == [
        2,
        2,
        2,
        0,
    ]


def test_experts_of_a_measured_model_are_gathered_beside_what_autograd_keeps() -> None:
    """Hunyuan-A13B with two layers, no recomputation, 4 ranks: 4.354 GiB in an engine, 3.298 before."""
    attention = [(16_777_216,), (4_194_304,), (4_194_304,), (16_777_216,)]
    layer = [*attention, (65_536,), (402_653_184, 201_326_592), *[(12_582_912,)] * 3]
    modules = ((524_972_032,), *layer, *layer, (524_972_032,))
    model = dataclasses.replace(MOONLIGHT, modules=modules, stacked=(6, 15), layers=2)
    setting = Setting(stage=3, world=4, micro_batch=4, sequence=512)
    assert 2 * gathered(model, setting)[0] / memory.GIB == pytest.approx(4.354, rel=0.04)


def test_a_frozen_embedding_is_not_kept_for_a_backward_pass() -> None:
    """Qwen3-8B in 4 bits with four layers, 2 ranks: 8.28e8 elements in an engine."""
    qwen = ModelShape(
        name="qwen", layers=4, hidden=4096, heads=32, kv_heads=8, head_dim=128,
        intermediate=12288, vocab=151_936,
    )  # fmt: skip
    setting = dataclasses.replace(ZERO_3, world=2, lora_rank=64, checkpointing=False)
    quantized = dataclasses.replace(setting, quantized=True)
    assert gathered(qwen, quantized)[0] == pytest.approx(8.28e8, rel=0.02)
    trained = dataclasses.replace(quantized, saved_head=True)
    assert gathered(qwen, trained)[0] > 1.4e9


def test_a_buffer_of_several_tensors_is_there_until_the_last_is_used() -> None:
    """DeiT-base, all offloaded, 8 ranks: 0.759 GiB in an engine at a block's forward pass.

    A single tensor is its own buffer, and so is a small one: it is never partitioned.
    """
    block = 200_000
    for sizes, buffered in (
        (((block,), (block,), (block,)), 2 * block),
        (((block,), (5,), (block,)), 0),
    ):
        loss, _, ahead = replay(sizes, 10**9, 10**9, 10**9)
        whole = sum(sum(row) for row in sizes)
        assert (ahead, loss) == (whole + buffered, whole)
