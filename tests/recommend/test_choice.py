"""The choice: its order, and what holds for every plan."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dsdoctor.model.launch_plan import LaunchPlan, decode, encode
from dsdoctor.model.units import GIB
from dsdoctor.recommend.choice import LADDER, OFFLOADS
from dsdoctor.recommend.machine import machine_of
from dsdoctor.recommend.models import PRESETS, from_size, resolve
from dsdoctor.recommend.optimizers import OPTIMIZERS
from dsdoctor.recommend.options import HEADROOM, PlanOptions
from dsdoctor.recommend.planning import recommend
from dsdoctor.report.launch_plan import render


def plan_for(gib: float, model: str = "llama-3-8b", **options: Any) -> LaunchPlan:
    machine = machine_of(gpu_gib=gib, count=4, host_gib=2000, cpus=64)
    return recommend(machine, resolve(model), PlanOptions(**options))


def test_less_memory_walks_up_the_stages_and_then_offloads() -> None:
    """Each chosen option comes later in the order as the card shrinks, never earlier."""
    places = []
    for gib in (192, 141, 96, 80, 64, 48, 40, 32, 24, 16, 12, 8):
        plan = plan_for(gib, global_batch=64)
        if plan.fits:
            rung = LADDER.index((plan.stage, plan.offload))
            places.append((OFFLOADS.index(plan.offload), plan.checkpointing, rung))
    assert places == sorted(places)
    assert places[0] == (0, False, 1)
    assert places[-1][0] == 2
    assert len({place[0] for place in places}) == 3


def test_a_lower_stage_goes_before_a_higher_that_fits_too() -> None:
    plan = plan_for(141)
    fitting = [row.name for row in plan.memory.options if row.fits]
    assert plan.memory.chosen == fitting[0] == "zero-1"
    assert {"zero-2", "zero-3", "zero-3+optimizer"} <= set(fitting)


def test_no_offload_goes_before_offload_even_at_a_smaller_batch() -> None:
    plan = plan_for(80)
    offloaded = next(row for row in plan.memory.options if row.name == "zero-3+optimizer")
    assert plan.offload == "none"
    assert offloaded.fits
    assert offloaded.micro_batch > plan.micro_batch


def test_a_bigger_micro_batch_goes_before_accumulation() -> None:
    plan = plan_for(141, global_batch=64)
    setting = (plan.micro_batch, plan.accumulation)
    assert plan.micro_batch * plan.accumulation * 4 == 64
    assert setting == (4, 4)
    bigger = plan_for(141, global_batch=64, micro_batch=8, checkpointing=plan.checkpointing)
    fits = {row.name: row.fits for row in bigger.memory.options}
    assert not fits[str(plan.memory.chosen)]
    assert plan_for(80, global_batch=64).micro_batch < 4


def test_recomputation_comes_after_dividing_more_and_before_offload() -> None:
    for gib in (80, 48, 40, 32, 24):
        plan = plan_for(gib, global_batch=64)
        plain = [r for r in plan.memory.options if r.fits and r.offload == "none"]
        if plan.checkpointing:
            assert all(row.checkpointing for row in plain)
        if plan.offload != "none":
            assert plain == []


@pytest.mark.parametrize("objective", sorted(HEADROOM))
def test_objectives(objective: str) -> None:
    plan = plan_for(80, objective=objective)
    chosen = next(row for row in plan.memory.options if row.verdict == "chosen")
    assert chosen.gpu_bytes <= 80 * GIB * (1 - HEADROOM[objective])
    if objective == "memory":
        assert chosen.gpu_bytes == min(row.gpu_bytes for row in plan.memory.options if row.fits)


def test_nothing_is_called_the_fastest() -> None:
    """It is an order, not a measurement."""
    for gib in (8, 24, 80):
        for objective in HEADROOM:
            assert "fastest" not in render(plan_for(gib, objective=objective), 80)


def test_every_option_says_why() -> None:
    plan = plan_for(80)
    assert [row.verdict for row in plan.memory.options].count("chosen") == 1
    for row in plan.memory.options:
        said = next(reason for reason in plan.reasons if reason.subject == row.name)
        assert (said.verdict, said.text) == (row.verdict, row.reason)
        assert row.reason


@given(
    st.sampled_from(sorted(PRESETS)).map(PRESETS.__getitem__)
    | st.integers(1, 10**6).map(lambda millions: from_size(f"{millions}M")),
    st.floats(0.5, 300),
    st.integers(1, 16),
    st.sampled_from(((6, 1), (7, 0), (7, 5), (8, 0), (9, 0), (12, 0))),
    st.none() | st.floats(1, 4000),
    st.sampled_from(sorted(HEADROOM)),
    st.sampled_from(sorted(OPTIMIZERS)),
    st.sampled_from(("deepspeed", "torchrun", "accelerate")),
    st.sampled_from(("full", "lora")),
    st.none() | st.integers(1, 64),
    st.integers(1, 4),
)
def test_every_plan_is_consistent(
    model: Any,
    gib: float,
    count: int,
    cc: tuple[int, int],
    host: float | None,
    objective: str,
    optimizer: str,
    launcher: str,
    finetune: str,
    batches: int | None,
    nodes: int,
) -> None:
    world = count * nodes
    plan = recommend(
        machine_of(gpu_gib=gib, count=count, cc=cc, host_gib=host),
        model,
        PlanOptions(
            objective=objective,
            optimizer=optimizer,
            launcher=launcher,
            finetune=finetune,
            nodes=nodes,
            global_batch=batches * world if batches else None,
        ),
    )
    config = plan.ds_config
    assert plan.micro_batch * plan.accumulation * plan.world == plan.global_batch
    assert config["train_batch_size"] == plan.global_batch
    assert config["zero_optimization"]["stage"] == plan.stage
    assert "auto" not in json.dumps(config)
    assert not (config.get("bf16") and config.get("fp16"))
    assert decode(encode(plan)) == plan
    assert (
        plan.fits
        == (plan.memory.chosen is not None)
        == any(row.fits for row in plan.memory.options)
    )
    for row in plan.memory.options:
        room = 1 - plan.memory.headroom
        gpu_ok = row.gpu_limit_bytes is None or row.gpu_bytes <= row.gpu_limit_bytes * room
        host_ok = row.host_limit_bytes is None or row.host_bytes <= row.host_limit_bytes * room
        assert (gpu_ok and host_ok) or not row.fits
        passing = row.gpu_bytes - sum(i.bytes for i in row.gpu if i.phase == "resident")
        wrong = row.gpu_limit_bytes is not None and (
            row.gpu_bytes + 0.1 * passing > row.gpu_limit_bytes - 1
        )
        assert row.fits or not gpu_ok or not host_ok or wrong
        assert row.reason
    assert all(len(line) < 400 for line in render(plan, 80, verbose=True).splitlines())
