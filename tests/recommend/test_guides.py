"""Rows of the field guides: what a reader computed by hand, computed."""

from __future__ import annotations

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.recommend import memory
from dsdoctor.recommend.memory import Setting
from dsdoctor.recommend.models import PRESETS, from_size, resolve
from dsdoctor.recommend.output import command_line
from dsdoctor.recommend.plan import Options, machine_of, recommend

GB = 10**9
GIB = memory.GIB


def test_guide_row_a5_presets_are_computed_and_justified() -> None:
    plan = recommend(
        machine_of(gpu_gib=80, host_gib=256), resolve("qwen2.5-1.5b"), Options(global_batch=128)
    )
    assert plan.fits
    assert plan.micro_batch * plan.accumulation == 128
    assert plan.micro_batch > 1
    assert 1 <= plan.workers <= 4
    assert all(option.reason for option in plan.memory.options)


@pytest.mark.parametrize("launcher", ["deepspeed", "torchrun", "accelerate"])
def test_guide_row_b3_one_line_never_fights_the_variable(launcher: str) -> None:
    plan = recommend(
        machine_of(gpu_gib=32, count=2, cc=(7, 0)), resolve("gpt2"), Options(launcher=launcher)
    )
    line = command_line(plan)
    assert "CUDA_DEVICE_ORDER=PCI_BUS_ID" in line
    assert ("CUDA_VISIBLE_DEVICES" in plan.env) == (launcher == "torchrun")
    assert ("--include localhost:0,1" in line) == (launcher == "deepspeed")


def test_guide_row_b5_memory_table_of_gpt2_xl() -> None:
    """The guide: weights 3.0, gradients 3.0, Adam 12.0 GB; 15-16 GB measured with ZeRO-2 on 4.

    Its own sum for that, 23.75 GB, takes 15 GB of activations, which a kernel that stores no
    attention scores does not need.
    """
    model = PRESETS["gpt2-xl"]
    one = {
        item.name: item.bytes
        for item in memory.estimate(model, Setting(precision="fp16", world=1)).gpu
    }
    assert one["parameters"] / GB == pytest.approx(3.0, rel=0.05)
    assert one["gradients"] / GB == pytest.approx(3.0, rel=0.05)
    assert 8 * model.parameters / GB == pytest.approx(12.0, rel=0.05)
    assert one["optimizer"] == 12 * model.parameters
    setting = Setting(
        stage=2, world=4, precision="fp16", sequence=1024, bucket=500_000_000, accumulation=32
    )
    predicted = memory.estimate(model, setting).gpu_bytes / GB
    assert predicted == pytest.approx(15.5, rel=0.10)
    by_hand = 3.0 + (3.0 + 12.0) / 4 + 15.0 + 2.0
    assert by_hand == 23.75
    assert predicted < by_hand


def test_guide_row_b6_batch_triangle_holds() -> None:
    plan = recommend(
        machine_of(gpu_gib=32, count=4, cc=(7, 0), host_gib=64),
        resolve("gpt2-xl"),
        Options(micro_batch=1, global_batch=128, sequence=1024),
    )
    assert (plan.micro_batch, plan.accumulation, plan.world) == (1, 32, 4)
    assert plan.ds_config["train_batch_size"] == 128
    with pytest.raises(UsageError, match="not a multiple of 4"):
        recommend(machine_of(gpu_gib=32, count=4), resolve("gpt2"), Options(global_batch=33))


def test_guide_row_c1_27b_on_four_gpus_with_the_sequence_as_a_lever() -> None:
    machine = machine_of(gpu_gib=80, count=4, host_gib=1000)
    needs = []
    for sequence in (4096, 2048, 1024):
        plan = recommend(
            machine,
            from_size("27B"),
            Options(sequence=sequence, micro_batch=1, global_batch=64, checkpointing=True),
        )
        assert plan.fits
        assert plan.stage >= 2
        assert plan.offload != "none"
        needs.append(
            {option.name: option.gpu_bytes for option in plan.memory.options}["zero-3+optimizer"]
        )
    assert needs == sorted(needs, reverse=True)


def test_guide_row_c6_sequence_and_attention_are_inputs() -> None:
    model = PRESETS["llama-3-8b"]
    flash, eager = (
        [
            memory.activation_bytes(model, Setting(sequence=sequence, attention=kind))
            for sequence in (4096, 2048, 1024)
        ]
        for kind in ("flash", "eager")
    )
    assert flash[0] == 2 * flash[1] == 4 * flash[2]
    assert eager[0] > 2 * eager[1]
    assert all(slow > fast for slow, fast in zip(eager, flash, strict=True))


@pytest.mark.parametrize("gib", [2, 4, 6, 8])
def test_guide_row_d1_tiny_gpus(gib: int) -> None:
    plan = recommend(
        machine_of(gpu_gib=gib, cc=(7, 5), host_gib=16), from_size("100M"), Options(sequence=256)
    )
    assert plan.fits
    assert plan.precision == "fp16"


def test_guide_row_d2_windows_gets_one_gpu_and_no_pinned_memory() -> None:
    machine = machine_of(gpu_gib=2, count=2, cc=(7, 5), host_gib=16, system="Windows")
    plan = recommend(machine, resolve("gpt2"), Options(sequence=512))
    assert plan.world == 1
    assert plan.offload == "optimizer"
    assert plan.ds_config["zero_optimization"]["offload_optimizer"]["pin_memory"] is False


def test_guide_row_e3_two_node_torchrun() -> None:
    plan = recommend(
        machine_of(gpu_gib=80, count=8),
        resolve("llama-3-8b"),
        Options(nodes=2, launcher="torchrun", hosts=("a", "b")),
    )
    line = command_line(plan)
    assert "--nnodes 2" in line
    assert '--node-rank "$NODE_RANK"' in line
    assert "--master-addr a" in line
    assert "--master-port 29500" in line
    assert plan.world == 16


def test_guide_row_e4_batch_grows_with_the_gpu_and_workers_follow_the_cpus() -> None:
    model = resolve("qwen2.5-0.5b")
    batches = [
        recommend(machine_of(gpu_gib=gib, cc=cc, cpus=2), model, Options(sequence=1024))
        for gib, cc in ((24, (8, 6)), (40, (8, 0)), (80, (8, 0)))
    ]
    sizes = [plan.micro_batch for plan in batches]
    assert sizes == sorted(sizes)
    assert sizes[0] < sizes[-1]
    assert all(plan.workers == 2 for plan in batches)
    assert recommend(machine_of(gpu_gib=32, cc=(7, 0)), model).precision == "fp16"
