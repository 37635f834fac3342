"""Rows of the field guides: what a reader computed by hand, computed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.recommend import files, memory
from dsdoctor.recommend.blocks import kept_bytes
from dsdoctor.recommend.memory import Setting
from dsdoctor.recommend.models import PRESETS, from_size, resolve
from dsdoctor.recommend.output import command_line
from dsdoctor.recommend.planning import PlanOptions, machine_of, recommend
from dsdoctor.report.launch_plan import render

GB = 10**9
GIB = memory.GIB


def test_guide_a5_presets_are_computed_and_justified() -> None:
    """The guide's two hand-made presets: (1, 128, 1 worker) and (4, 32, 4 workers)."""
    model = resolve("qwen2.5-1.5b")
    roomy = recommend(
        machine_of(gpu_gib=80, host_gib=256, cpus=16), model, PlanOptions(global_batch=128)
    )
    tight = recommend(
        machine_of(gpu_gib=24, host_gib=64, cpus=1),
        model,
        PlanOptions(global_batch=128, objective="memory"),
    )
    for plan in (roomy, tight):
        assert plan.fits
        assert plan.micro_batch * plan.accumulation == 128
        assert all(option.reason for option in plan.memory.options)
        notes = {reason.subject: reason.text for reason in plan.reasons}
        assert "stay free at the predicted peak" in notes["headroom"]
    assert (tight.micro_batch, tight.accumulation, tight.workers) == (1, 128, 1)
    assert roomy.micro_batch >= 4
    assert roomy.workers == 4


def test_guide_a6_the_plan_is_what_a_short_run_proves(tmp_path: Path) -> None:
    """The debug launch of ten steps is smoke's: it reads the saved plan, shape and all."""
    plan = recommend(machine_of(gpu_gib=24, cpus=8), resolve("qwen2.5-0.5b"))
    files.write(plan, tmp_path)
    saved = files.read(tmp_path)
    assert saved.ds_config["train_micro_batch_size_per_gpu"] == saved.micro_batch
    chosen = next(row for row in saved.memory.options if row.name == saved.memory.chosen)
    assert chosen.gpu_bytes > 0
    shape = (saved.model.layers, saved.model.hidden, saved.model.vocab, saved.sequence)
    assert shape == (24, 896, 151936, 2048)


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "accelerate"])
def test_guide_b3_one_line_never_fights_the_variable(launcher: str) -> None:
    plan = recommend(
        machine_of(gpu_gib=32, count=2, cc=(7, 0)), resolve("gpt2"), PlanOptions(launcher=launcher)
    )
    line = command_line(plan)
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in line
    assert ("CUDA_VISIBLE_DEVICES" in plan.env) == (launcher == "torchrun")
    assert ("--include localhost:0,1" in line) == (launcher == "deepspeed")


GPT2_XL_GUIDE = Setting(
    stage=2, world=4, precision="fp16", sequence=1024, bucket=500_000_000, accumulation=32
)


def test_guide_b5_memory_table_of_gpt2_xl() -> None:
    """The guide: weights 3.0, gradients 3.0, Adam 12.0 GB; 15-16 GB measured with ZeRO-2 on 4.

    Its own sum for that, 23.75 GB, takes 15 GB of activations. docs/recommend.md says what of it
    is not there: scores that the kernel does not store. GPT-2 keeps 29 h elements a token and layer.
    """
    model = PRESETS["gpt2-xl"]
    one = {
        item.name: item.bytes
        for item in memory.estimate(model, Setting(precision="fp16", world=1)).gpu
    }
    assert one["parameters"] / GB == pytest.approx(3.0, rel=0.05)
    assert one["gradients"] / GB == pytest.approx(3.0, rel=0.05)
    assert 8 * model.parameters / GB == pytest.approx(12.0, rel=0.05)
    assert one["optimizer"] == 12 * model.parameters  # and 6.2 GB of fp32 weights, left out there
    sized = memory.estimate(model, GPT2_XL_GUIDE)
    predicted = sized.gpu_bytes / GB
    assert 15.5 <= predicted <= 17.5
    activations = next(item.bytes for item in sized.gpu if item.name == "activations") / GB
    assert activations == pytest.approx(48 * 1024 * 1600 * 2 * 29 / GB, rel=0.02)
    by_hand = 3.0 + (3.0 + 12.0) / 4 + 15.0 + 2.0
    assert by_hand == 23.75
    eager = memory.estimate(model, dataclasses.replace(GPT2_XL_GUIDE, attention="eager"))
    assert predicted < eager.gpu_bytes / GB < by_hand


def test_guide_b5_every_stage_and_offload_is_itemised_against_what_there_is() -> None:
    plan = recommend(
        machine_of(gpu_gib=32, count=4, cc=(7, 0), host_gib=64),
        resolve("gpt2-xl"),
        PlanOptions(micro_batch=1, global_batch=128, sequence=1024),
    )
    assert [row.name for row in plan.memory.options] == [
        "zero-0", "zero-1", "zero-2", "zero-3", "zero-1+optimizer", "zero-2+optimizer",
        "zero-3+optimizer", "zero-3+optimizer+parameters",
    ]  # fmt: skip
    for row in plan.memory.options:
        assert row.gpu
        assert row.gpu_limit_bytes == 32 * GIB
        assert row.host_limit_bytes == 64 * GIB
    text = render(plan, 120, verbose=True)
    for words in ("gradients", "optimizer", "activations", "logits", "CUDA context", "z3+op"):
        assert words in text


def test_guide_b6_batch_by_gpu_memory() -> None:
    """The guide's table has rows for 16, 24, 32 and 40+ GB, whose batches it chose by hand."""
    batches = []
    for gib in (16, 24, 32, 40, 80):
        plan = recommend(
            machine_of(gpu_gib=gib, count=4, cc=(7, 0), host_gib=256),
            resolve("gpt2-xl"),
            PlanOptions(global_batch=128, sequence=1024),
        )
        assert plan.fits
        assert plan.micro_batch * plan.accumulation * plan.world == 128
        batches.append(plan.micro_batch)
    assert batches[0] < batches[-1]


def test_guide_b6_batch_triangle_holds() -> None:
    plan = recommend(
        machine_of(gpu_gib=32, count=4, cc=(7, 0), host_gib=64),
        resolve("gpt2-xl"),
        PlanOptions(micro_batch=1, global_batch=128, sequence=1024),
    )
    assert (plan.micro_batch, plan.accumulation, plan.world) == (1, 32, 4)
    assert plan.ds_config["train_batch_size"] == 128
    with pytest.raises(UsageError, match="not a multiple of 4"):
        recommend(machine_of(gpu_gib=32, count=4), resolve("gpt2"), PlanOptions(global_batch=33))


def test_guide_c1_27b_on_four_gpus_with_the_sequence_as_a_lever() -> None:
    machine = machine_of(gpu_gib=80, count=4, host_gib=1000)
    needs = []
    for sequence in (4096, 2048, 1024):
        plan = recommend(
            machine,
            from_size("27B"),
            PlanOptions(sequence=sequence, micro_batch=1, global_batch=64, checkpointing=True),
        )
        assert plan.fits
        assert plan.stage >= 2
        assert plan.offload != "none"
        needs.append(
            {option.name: option.gpu_bytes for option in plan.memory.options}["zero-3+optimizer"]
        )
    assert needs == sorted(needs, reverse=True)


def test_guide_c1_loading_before_deepspeed_is_told_of() -> None:
    """27B loaded by each of 4 ranks before DeepSpeed divides it: 201 GiB of host memory."""
    machine = machine_of(gpu_gib=80, count=4, host_gib=1000)
    plan = recommend(machine, from_size("27B"), PlanOptions(sequence=2048))
    notes = {reason.subject: reason.text for reason in plan.reasons}
    assert plan.stage == 3
    assert "zero.Init" in notes["loading"]
    assert "201.2 GiB" in notes["loading"]
    small = recommend(machine_of(gpu_gib=80, count=4, host_gib=150), from_size("27B"))
    zero2 = next(row for row in small.memory.options if row.name == "zero-2")
    assert not zero2.fits
    assert "on each host (weights being loaded alone 201.2)" in zero2.reason


def test_guide_c6_sequence_and_attention_are_inputs() -> None:
    model = PRESETS["llama-3-8b"]
    flash, eager = (
        [
            kept_bytes(model, Setting(sequence=sequence, attention=kind))
            for sequence in (4096, 2048, 1024)
        ]
        for kind in ("flash", "eager")
    )
    assert flash[0] == 2 * flash[1] == 4 * flash[2]
    assert eager[0] > 2 * eager[1]
    assert all(slow > fast for slow, fast in zip(eager, flash, strict=True))


def test_guide_c6_the_longest_sequence_and_the_largest_micro_batch_are_said() -> None:
    """Each is the last that fits: one step more does not; several GPUs are compared."""
    machine, model = machine_of(gpu_gib=80, count=4, host_gib=1000), resolve("llama-3-8b")
    asked = PlanOptions(stage=2, offload="none", micro_batch=2)
    plan = recommend(machine, model, asked)
    rows = {(row.gpus, row.checkpointing): row for row in plan.memory.reach}
    assert {gpus for gpus, _ in rows} == {1, 2, 4, 8}
    assert [option.name for option in plan.memory.options] == ["zero-2"]
    for mode in (False, True):
        here = rows[4, mode]
        for more, fits in ((0, True), (1, False)):
            option = dataclasses.replace(
                asked, checkpointing=mode, micro_batch=here.micro_batch + more
            )
            assert recommend(machine, model, option).fits is fits
    assert rows[4, True].micro_batch > rows[4, False].micro_batch
    longest = dataclasses.replace(asked, checkpointing=False, sequence=rows[4, False].sequence)
    assert recommend(machine, model, longest).fits
    longer = dataclasses.replace(longest, sequence=rows[4, False].sequence + 128)
    assert not recommend(machine, model, longer).fits
    assert rows[8, True].gpu_bytes < rows[4, True].gpu_bytes
    text = render(plan, 80)
    assert "what fits at 2048 tokens, or with micro-batch 2" in text
    assert "norm in fp64" in text


def test_what_only_the_host_prevents_is_not_blamed_on_the_gpus() -> None:
    """Ranks that load weights take host memory each: four do not fit where two do."""
    machine = machine_of(gpu_gib=24, count=2, host_gib=52)
    plan = recommend(machine, resolve("mistral-7b"), PlanOptions(finetune="lora"))
    assert plan.fits
    short = {row.gpus: row.host_short for row in plan.memory.reach if row.checkpointing}
    assert short == {1: False, 2: False, 4: True, 8: True}
    text = render(plan, 80, verbose=True)
    assert "    host        -" in text
    assert "the memory of the host is too small for so many ranks" in text
    roomy = recommend(
        machine_of(gpu_gib=24, count=2, host_gib=520),
        resolve("mistral-7b"),
        PlanOptions(finetune="lora"),
    )
    assert not any(row.host_short for row in roomy.memory.reach)
    assert "too small for so many ranks" not in render(roomy, 80)


def test_guide_b8_figures_to_compare_a_slow_run_with_are_in_the_plan() -> None:
    """What smoke holds its step time and workers against; too few CPUs are said."""
    plan = recommend(machine_of(gpu_gib=80, count=8, cpus=8), resolve("llama-3-8b"))
    notes = {reason.subject: reason.text for reason in plan.reasons}
    assert plan.workers == 1
    assert "1 per rank for its data loader" in notes["workers"]
    assert plan.env["OMP_NUM_THREADS"] == "1"


@pytest.mark.parametrize("gib", [2, 4, 6, 8])
def test_guide_d1_tiny_gpus(gib: int) -> None:
    plan = recommend(
        machine_of(gpu_gib=gib, cc=(7, 5), host_gib=16),
        from_size("100M"),
        PlanOptions(sequence=256),
    )
    assert plan.fits
    assert plan.precision == "fp16"


def test_guide_d4_every_setting_tried_has_its_memory() -> None:
    """Before and after of the guide's table: each rung of the ladder, at the same batch."""
    plan = recommend(
        machine_of(gpu_gib=2, cc=(7, 5), host_gib=16),
        from_size("25M"),
        PlanOptions(sequence=256, micro_batch=4),
    )
    figures = {row.name: (row.gpu_bytes, row.host_bytes) for row in plan.memory.options}
    assert figures["zero-2+optimizer"][0] < figures["zero-2"][0]
    assert figures["zero-2+optimizer"][1] > figures["zero-2"][1]


def test_guide_d2_windows_gets_one_gpu_and_no_pinned_memory() -> None:
    machine = machine_of(gpu_gib=2, count=2, cc=(7, 5), host_gib=16, system="Windows")
    plan = recommend(machine, resolve("gpt2"), PlanOptions(sequence=512))
    assert plan.world == 1
    assert plan.offload == "optimizer"
    assert plan.ds_config["zero_optimization"]["offload_optimizer"]["pin_memory"] is False


def test_guide_e3_two_node_torchrun() -> None:
    plan = recommend(
        machine_of(gpu_gib=80, count=8),
        resolve("llama-3-8b"),
        PlanOptions(nodes=2, launcher="torchrun", hosts=("a", "b")),
    )
    line = command_line(plan)
    assert "--nnodes 2" in line
    assert '--node-rank "$NODE_RANK"' in line
    assert "--master-addr a" in line
    assert "--master-port 29500" in line
    assert plan.world == 16


def test_guide_e4_batch_grows_with_the_gpu_and_workers_follow_the_cpus() -> None:
    model = resolve("qwen2.5-0.5b")
    batches = [
        recommend(machine_of(gpu_gib=gib, cc=cc, cpus=2), model, PlanOptions(sequence=1024))
        for gib, cc in ((24, (8, 6)), (40, (8, 0)), (80, (8, 0)))
    ]
    sizes = [plan.micro_batch for plan in batches]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert all(plan.workers == 2 for plan in batches)
    assert recommend(machine_of(gpu_gib=32, cc=(7, 0)), model).precision == "fp16"
