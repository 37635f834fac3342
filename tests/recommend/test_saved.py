"""Modules that are trained in full beside adapters."""

from __future__ import annotations

import dataclasses

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.job.request import with_job
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.recommend import memory, models
from dsdoctor.recommend.demand import demand_of
from dsdoctor.recommend.options import PlanOptions, validate
from dsdoctor.recommend.saved import Saved, saved_of, trained_head, trained_parameters
from dsdoctor.recommend.setting import Setting
from dsdoctor.testing import missing

MODEL = models.resolve("llama-3-8b")
ADAPTERS = Setting(lora_rank=16, stage=2, world=4)
HEAD = MODEL.vocab * MODEL.hidden


def of(*names: str) -> Setting:
    saved = saved_of(names, MODEL)
    return dataclasses.replace(ADAPTERS, saved=saved.parameters, saved_head=saved.head)


@pytest.mark.parametrize(
    ("names", "saved"),
    [
        pytest.param((), Saved(), id="nothing"),
        pytest.param(("embed_tokens",), Saved(HEAD, head=True), id="embeddings alone"),
        pytest.param(
            ("embed_tokens", "lm_head"), Saved(2 * HEAD, head=True), id="embeddings and head"
        ),
        pytest.param(("lm_head", "lm_head"), Saved(HEAD, head=True), id="the head twice"),
        pytest.param(("resampler=76M",), Saved(76_000_000), id="a size in millions"),
        pytest.param(("a=1.5B", "b=12"), Saved(1_500_000_012), id="two sizes"),
    ],
)
def test_names_have_a_size(names: tuple[str, ...], saved: Saved) -> None:
    assert saved_of(names, MODEL) == saved


@pytest.mark.parametrize(
    ("name", "message"),
    [
        pytest.param(
            "head",
            "`--modules-to-save head` is not a module of known size; expected `embed_tokens`",
            id="a module that the model does not name",
        ),
        pytest.param(
            "vision",
            "has no vision tower of known size; pass its size, as in `vision=400M`",
            id="a vision tower of unknown size",
        ),
        pytest.param(
            "resampler=many", "is not a module of known size", id="a size that is not a number"
        ),
    ],
)
def test_a_name_without_a_size_is_refused(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        saved_of((name,), MODEL)


def test_the_tower_of_a_vision_model_has_a_size() -> None:
    config = {
        "model_type": "llava",
        "text_config": {
            "model_type": "llama",
            "hidden_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "intermediate_size": 128,
            "vocab_size": 100,
        },
        "vision_config": {
            "model_type": "clip_vision_model",
            "hidden_size": 32,
            "num_hidden_layers": 3,
            "num_attention_heads": 2,
            "intermediate_size": 64,
            "image_size": 28,
            "patch_size": 14,
        },
    }
    model = models.from_config(config, "small")
    assert model.towers
    assert saved_of(("vision",), model).parameters == sum(
        tower.blocks.block_parameters for tower in model.towers
    )


def test_a_copy_is_a_weight_and_a_share_of_the_optimizer() -> None:
    plain, saved = memory.estimate(MODEL, ADAPTERS), memory.estimate(MODEL, of("embed_tokens"))

    def item(name: str, found: memory.Memory) -> int:
        return sum(one.bytes for one in found.gpu if one.name == name)

    assert item("parameters", saved) - item("parameters", plain) == 2 * HEAD
    assert item("optimizer", saved) - item("optimizer", plain) == 12 * HEAD // 4
    assert trained_parameters(MODEL, of("embed_tokens")) == MODEL.lora_parameters(16) + HEAD
    assert saved.gpu_bytes > plain.gpu_bytes + 5 * HEAD


def test_the_head_has_a_gradient_only_if_it_is_trained() -> None:
    assert trained_head(MODEL, ADAPTERS) == 0
    assert trained_head(MODEL, of("resampler=76M")) == 0
    assert trained_head(MODEL, of("lm_head")) == HEAD
    assert trained_head(MODEL, Setting()) == HEAD


def test_check_counts_them_too() -> None:
    plain = with_job(RunNeeds(), model="llama-3-8b", finetune="lora")
    saved = with_job(
        RunNeeds(), model="llama-3-8b", finetune="lora", modules_to_save="embed_tokens,lm_head"
    )
    assert saved.modules_to_save == ("embed_tokens", "lm_head")
    absent = missing()
    before, after = (demand_of(run, 4, 1, absent).gpu_bytes for run in (plain, saved))
    assert after > before + 4 * HEAD


@pytest.mark.parametrize(
    ("finetune", "names"), [(None, "lm_head"), ("full", "lm_head"), ("lora", "nothing")]
)
def test_check_refuses_what_does_not_fit(finetune: str | None, names: str) -> None:
    with pytest.raises(UsageError, match="--modules-to-save"):
        with_job(RunNeeds(), model="7B", finetune=finetune, modules_to_save=names)


def test_all_parameters_have_nothing_beside_them() -> None:
    with pytest.raises(UsageError, match="belongs to adapters"):
        validate(PlanOptions(modules_to_save=("lm_head",)), 1)
