"""What ZeRO-3's `linear` keeps of frozen layers (`LinearFunctionForZeroStage3` of DeepSpeed)."""

from __future__ import annotations

import dataclasses

import pytest

from dsdoctor.recommend import memory
from dsdoctor.recommend.models import PRESETS
from dsdoctor.recommend.setting import Setting

MODEL = PRESETS["qwen2.5-7b"]
ADAPTERS = Setting(stage=3, world=8, micro_batch=2, sequence=1024, lora_rank=16)
#: The outputs of both norms and the product before the MLP's last layer, in 16 bits.
BLOCK = 2 * 2 * 1024 * (2 * MODEL.hidden + MODEL.intermediate)


def activations(setting: Setting, phase: str) -> int:
    found = memory.estimate(MODEL, setting).gpu
    return sum(item.bytes for item in found if (item.name, item.phase) == ("activations", phase))


def more(setting: Setting, phase: str) -> int:
    """Activations beyond those with torch's own `linear`."""
    plain = dataclasses.replace(setting, linear_views=True)
    return activations(setting, phase) - activations(plain, phase)


def test_inputs_of_all_layers_are_there_at_the_loss() -> None:
    assert more(ADAPTERS, "loss") == MODEL.layers * BLOCK


def test_with_recomputation_those_of_one_block_are() -> None:
    again = dataclasses.replace(ADAPTERS, checkpointing=True)
    assert more(again, "loss") == 0
    assert more(again, "backward") == BLOCK


@pytest.mark.parametrize(
    "changes",
    [{"lora_dropout": False}, {"quantized": True}, {"stage": 2}, {"lora_rank": 0}],
    ids=["adapters read the input itself", "4-bit layers", "weights are whole", "all are trained"],
)
def test_otherwise_nothing_is_added(changes: dict[str, bool | int]) -> None:
    setting = dataclasses.replace(ADAPTERS, **changes)  # type: ignore[arg-type]
    assert more(setting, "loss") == 0
