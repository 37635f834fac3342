"""What a plan counts for the kernels that take a window, or fuse the loss."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.models import from_config, resolve
from dsdoctor.recommend.options import PlanOptions
from dsdoctor.recommend.planning import recommend


def test_a_window_no_longer_than_the_sequence_needs_a_mask() -> None:
    """The plan of a Mistral with a window has keys for every query head, and a bias a layer."""
    machine = machine_of(gpu_gib=80, count=8)
    asked: dict[str, Any] = {"stage": 1, "micro_batch": 1, "checkpointing": False}

    def sized(name: str, sequence: int, attention: str | None = None) -> tuple[str, int]:
        options = PlanOptions(**asked, sequence=sequence, attention=attention)
        plan = recommend(machine, resolve(name), options)
        return plan.attention, plan.memory.options[0].gpu_bytes

    assert sized("mistral-7b", 4095)[0] == "flash"
    kind, size = sized("mistral-7b", 4096)
    assert kind == "sdpa"
    without = sized("mistral-7b-v0.2", 4096)
    assert without[0] == "flash"
    assert size > without[1] + 1.5 * (1 << 30)  # as one rank of eight in a real engine showed
    assert sized("mistral-7b", 4096, "flash") == without
    config = {"model_type": "qwen2", "hidden_size": 64, "num_attention_heads": 1, "vocab_size": 9,
              "num_hidden_layers": 1, "intermediate_size": 64, "sliding_window": 32}  # fmt: skip
    assert from_config(config).window == 0
    assert from_config({**config, "use_sliding_window": True}).window == 32
    mistral = {**config, "model_type": "mistral"}
    assert from_config(mistral).window == 32
    assert from_config({**mistral, "sliding_window": None}).window == 0


@pytest.mark.parametrize(("liger", "copies"), [
    ("0.6.1", 0), ("0.6.2", 6), ("0.8.2", 6), ("0.8.3", 0), (None, 0),
])  # fmt: skip
def test_a_fused_loss_copies_the_output_layer_s_gradient_in_some_releases(
    liger: str | None, copies: int
) -> None:
    model = resolve("llama-3-8b")
    machine = machine_of(gpu_gib=80, count=8)

    def of_loss(release: str | None, **asked: Any) -> int:
        options = PlanOptions(fused_loss=True, micro_batch=1, stage=3, liger=release, **asked)
        (row, *_) = recommend(machine, model, options).memory.options
        return sum(item.bytes for item in row.gpu if (item.name, item.phase) == ("logits", "loss"))

    head = model.vocab * model.hidden
    assert of_loss(liger) - of_loss(None) == copies * head
    assert of_loss(liger, finetune="lora") == of_loss(None, finetune="lora")
    assert of_loss(liger, precision="fp32") == of_loss(None, precision="fp32") > 12 * head / 2


def test_fragments_keep_no_block_from_its_place() -> None:
    """The first of them ran out of memory in a real engine, with 7.9 GiB free or in fragments."""

    def env(name: str, system: str = "Linux", **asked: Any) -> tuple[dict[str, str], bool]:
        machine = machine_of(gpu_gib=40, count=8, system=system)
        plan = recommend(machine, resolve(name), PlanOptions(**asked))
        told = [one for one in plan.reasons if one.subject == "fragmentation"]
        return dict(plan.env), bool(told)

    tight, told = env("gemma-2-9b", global_batch=64)
    assert tight["PYTORCH_CUDA_ALLOC_CONF"] == "expandable_segments:True"
    assert told
    for asked in (
        {"global_batch": 64, "fused_loss": True},
        {"micro_batch": 1, "objective": "memory"},
    ):
        other, told = env("gemma-2-9b", **asked)
        assert "PYTORCH_CUDA_ALLOC_CONF" not in other
        assert not told
