"""plan_exceeds_gpu_memory, plan_exceeds_host_memory and the probe that computes the demand.

Over 400 lines because the rows share one way to describe a machine and a plan.
"""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsdoctor.api import (
    DeepSpeedInstall,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    MemoryDemand,
    MemoryDetail,
    OsInfo,
    PlanNeeds,
    Resources,
    RunNeeds,
)
from dsdoctor.host import HostError
from dsdoctor.job.request import shape
from dsdoctor.probes.demand import memory_demand
from dsdoctor.recommend import memory
from dsdoctor.recommend.config_setting import left_out, setting_of
from dsdoctor.recommend.demand import shape_of
from dsdoctor.recommend.models import from_config
from dsdoctor.recommend.presets import PRESETS
from dsdoctor.recommend.setting import Setting
from dsdoctor.report.demand import lines as demand_lines
from dsdoctor.testing import FakeHost, judge
from dsdoctor_checks.memory import plan_exceeds_gpu_memory, plan_exceeds_host_memory
from tests.checks.machines import ABSENT, LINUX, NO_ENV, gpus

GIB = 1 << 30
#: Packages, what the command says of the training, the hostfile, and what torch and DeepSpeed see.
NOT_READ = (*(ABSENT,) * 6, FakeHost())
STAGE2: dict[str, Any] = {
    "train_micro_batch_size_per_gpu": 1,
    "fp16": {"enabled": True},
    "zero_optimization": {"stage": 2, "overlap_comm": True},
}
OFFLOAD: dict[str, Any] = {
    "bf16": {"enabled": True},
    "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
}


def run(model: str = "7B", config: dict[str, Any] | None = None, **more: Any) -> RunNeeds:
    return RunNeeds(model=shape(model), config=config, **{"finetune": "full", **more})


def demand(
    needs: RunNeeds, found: Any = ABSENT, env: Any = NO_ENV, command: Any = ABSENT
) -> MemoryDemand:
    known = DeepSpeedInstall(version="0.19.8")
    fact = memory_demand.function(needs, found, env, command, known, *NOT_READ)
    assert isinstance(fact, MemoryDemand)
    return fact


def on_gpus(needs: RunNeeds, found: Gpus) -> Finding:
    check = plan_exceeds_gpu_memory.gpu_memory_is_enough
    (finding,) = judge(
        check,
        memory_demand=demand(needs, found),
        gpus=found,
        run_needs=needs,
        environment=NO_ENV,
        torch_live=ABSENT,
    ).findings
    assert isinstance(finding, Finding)
    return finding


def on_host(
    fact: MemoryDemand, usable: float, *, free: float | None = None, **more: Any
) -> Finding:
    machine = Resources(
        cpus_logical=32,
        cpus_usable=32,
        memory_total_bytes=int(more.pop("total", usable) * GIB),
        memory_limit_bytes=int(usable * GIB),
        memory_available_bytes=int((usable if free is None else free) * GIB),
        swap_total_bytes=more.pop("swap", 0),
    )
    check = plan_exceeds_host_memory.host_memory_is_enough
    (finding,) = judge(
        check,
        memory_demand=fact,
        resources=machine,
        memory_detail=more.get("detail", ABSENT),
        os_info=more.get("os", LINUX),
    ).findings
    assert isinstance(finding, Finding)
    return finding


def test_the_demand_is_the_memory_model_of_recommend() -> None:
    fact = demand(run("gpt2-xl", STAGE2, sequence=1024), gpus("V100", "V100", "V100", "V100"))
    setting = Setting(
        stage=2,
        world=4,
        precision="fp16",
        sequence=1024,
        bucket=500_000_000,
        checkpointing=True,
        pin_memory=False,
    )
    expected = memory.estimate(PRESETS["gpt2-xl"], setting)
    assert fact.gpu_bytes == expected.gpu_bytes
    assert fact.gpu_items == {item.name: item.bytes for item in memory.at_peak(expected.gpu)}
    assert fact.host_bytes == expected.host_bytes
    assert fact.gpu_state_bytes < fact.gpu_bytes
    assert fact.assumed == ("activations are recomputed",)
    unsaid = demand(run("gpt2-xl", STAGE2, sequence=1024, finetune=None), gpus("V100"))
    assert unsaid.assumed == ("all parameters are trained", "activations are recomputed")


def test_defaults_of_deepspeed_and_not_of_recommend() -> None:
    three = {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}
    setting = setting_of(three, world=2, nodes=2, on_gpu=True, pinned=True)
    assert (setting.world, setting.nodes) == (4, 2)
    assert (setting.bucket, setting.overlap, setting.pin_memory) == (500_000_000, True, True)
    assert setting.offload == "none", "offload_param without offload_optimizer keeps the optimizer"
    ignored = {"zero_optimization": {"stage": 2, "offload_param": {"device": "cpu"}}}
    assert setting_of(ignored, world=1, nodes=1, on_gpu=True, pinned=True).offload == "none"


@pytest.mark.parametrize(
    ("model", "config", "cards", "status"),
    [
        pytest.param("gpt2-xl", STAGE2, ("V100",) * 4, "ok", id="gpt2-xl with ZeRO-2 on four V100"),
        pytest.param("7B", STAGE2, ("V100",) * 4, "fail", id="a 7B model with ZeRO-2 on four V100"),
        pytest.param("7B", STAGE2, ("A100",) * 8, "ok", id="a 7B model with ZeRO-2 on eight A100"),
        pytest.param("7B", None, ("A100",), "fail", id="a 7B model without a config on one A100"),
        pytest.param(
            "7B",
            OFFLOAD,
            ("A100",),
            "ok",
            id="a 7B model with the optimizer on the CPU on one A100",
        ),
        pytest.param(
            "7B",
            OFFLOAD,
            ("A100", "T4"),
            "warn",
            id="a 7B model with offload hardly fits the T4 beside an A100",
        ),
        pytest.param(
            "13B",
            OFFLOAD,
            ("A100", "T4"),
            "fail",
            id="a 13B model with offload does not fit the T4 beside an A100",
        ),
        pytest.param(
            "27B",
            {"zero_optimization": {"stage": 3}, "bf16": {"enabled": True}},
            ("A100",) * 4,
            "fail",
            id="a 27B model with ZeRO-3 on four A100",
        ),
        pytest.param("gpt2", STAGE2, ("4090",), "ok", id="gpt2 with ZeRO-2 on one RTX 4090"),
        pytest.param(
            "llama-2-7b",
            {"bf16": {"enabled": "auto"}, **OFFLOAD},
            ("4090",) * 2,
            "ok",
            id="llama-2-7b with bf16 auto and offload on two RTX 4090",
        ),
    ],
)
def test_gpu_memory(
    model: str, config: dict[str, Any] | None, cards: tuple[str, ...], status: str
) -> None:
    assert on_gpus(run(model, config), gpus(*cards)).status.value == status


def test_weights_alone_can_be_offloaded() -> None:
    three = {"bf16": {"enabled": True}, "zero_optimization": {"stage": 3}}
    away = {"stage": 3, "offload_param": {"device": "cpu"}}
    here = demand(run("7B", three), gpus("A100"))
    there = demand(run("7B", {**three, "zero_optimization": away}), gpus("A100"))
    weights = here.gpu_items["parameters"]
    assert "parameters" not in there.gpu_items
    assert here.gpu_state_bytes - there.gpu_state_bytes == weights
    assert there.host_items["parameters"] == weights


@pytest.mark.parametrize(
    ("model", "config", "card", "finetune", "status"),
    [
        pytest.param(
            "7B", STAGE2, "V100", "full", "fail", id="all weights of 7B are trained on a V100"
        ),
        pytest.param(
            "7B", STAGE2, "V100", None, "warn", id="7B on a V100, which adapters alone would fit"
        ),
        pytest.param("7B", STAGE2, "V100", "lora", "ok", id="adapters for 7B on a V100"),
        pytest.param(
            "7B",
            None,
            "A100",
            None,
            "warn",
            id="7B without a config on an A100, which adapters alone would fit",
        ),
        pytest.param(
            "13B",
            STAGE2,
            "4090",
            "lora",
            "warn",
            id="adapters for 13B on an RTX 4090, which QLoRA alone would fit",
        ),  # 16-bit weights do not fit, 4-bit ones do
        pytest.param(
            "70B",
            STAGE2,
            "4090",
            "lora",
            "fail",
            id="adapters for 70B on an RTX 4090 do not fit even with QLoRA",
        ),
        pytest.param(
            "70B", STAGE2, "4090", None, "fail", id="70B on an RTX 4090 does not fit in any way"
        ),
        pytest.param("gpt2", STAGE2, "4090", None, "ok", id="gpt2 on an RTX 4090"),
    ],
)
def test_adapters_are_not_told_that_they_do_not_fit(
    model: str, config: dict[str, Any] | None, card: str, finetune: str | None, status: str
) -> None:
    found = on_gpus(run(model, config, finetune=finetune), gpus(card))
    assert found.status.value == status
    if status == "warn":
        named = "QLoRA" if finetune == "lora" else "`--finetune lora`"
        assert named in found.message
        assert (
            found.evidence["floor_gib"] <= found.evidence["gpu_gib"] < found.evidence["state_gib"]
        )


def test_a_floor_is_below_what_recommend_computes_for_adapters() -> None:
    told = demand(run("7B", STAGE2, finetune="lora"), gpus("A100"))
    unsaid = demand(run("7B", STAGE2, finetune=None), gpus("A100"))
    full = demand(run("7B", STAGE2), gpus("A100"))
    assert full.gpu_floor_bytes is None
    assert told.gpu_floor_bytes == unsaid.gpu_floor_bytes
    assert told.gpu_floor_bytes is not None
    assert 7e9 / 2 < told.gpu_floor_bytes < told.gpu_state_bytes < full.gpu_state_bytes


def test_adapters_take_little_host_memory_with_offload() -> None:
    wanted = demand(run("13B", OFFLOAD, finetune="lora"), gpus("A100"))
    unsaid = demand(run("13B", OFFLOAD, finetune=None), gpus("A100"))
    full = demand(run("13B", OFFLOAD), gpus("A100"))
    assert on_host(wanted, 48).status.value == "ok"
    assert on_host(full, 48, total=512).status.value == "fail"
    open_ways = on_host(unsaid, 48, total=512)
    assert open_ways.status.value == "warn"
    assert "adapters would fit" in open_ways.message


def test_adapters_on_a_cpu() -> None:
    """There the items of all ranks together bear other names."""
    fact = demand(run("7B", None, finetune="lora", sequence=8192), Gpus())
    assert not fact.on_gpu
    assert fact.host_floor_bytes is not None
    assert fact.host_floor_bytes < 8 * GIB < fact.host_state_bytes < fact.host_bytes
    assert on_host(fact, 16, total=64).status.value == "warn"
    assert on_host(fact, 2, total=64).status.value == "fail"


def test_long_sequences_are_a_warning_as_activations_are_a_guess() -> None:
    needs = run("llama-3-8b", OFFLOAD, sequence=65536)
    found = on_gpus(needs, gpus("4090"))
    assert found.status.value == "warn"
    assert "activations are recomputed" in found.effect


def test_only_the_chosen_gpus_count() -> None:
    needs = run("7B", OFFLOAD, gpus=("0",))
    assert on_gpus(needs, gpus("A100", "T4")).status.value == "ok"


def test_memory_that_others_hold_is_a_warning() -> None:
    found = on_gpus(run("7B", OFFLOAD), gpus("A100", memory_free_bytes=4 * GIB))
    assert found.status.value == "warn"
    assert "GiB are free" in found.message


PLAN = PlanNeeds(
    path="launch.json",
    option="zero-2",
    gpus_per_node=2,
    gpu_ids=(0, 1),
    gpu_bytes=30 * GIB,
    host_bytes=100 * GIB,
    gpu_state_bytes=28 * GIB,
    host_state_bytes=96 * GIB,
    gpu_items={"parameters": 28 * GIB, "activations": 2 * GIB},
    host_items={"optimizer": 90 * GIB, "pinned rounding": 6 * GIB, "processes": 4 * GIB},
)


@pytest.mark.parametrize(
    ("cards", "status", "words"),
    [
        pytest.param(("A100", "A100"), "ok", "", id="two A100, as the plan says"),
        pytest.param(
            ("A100", "V100", "A100"),
            "ok",
            "",
            id="a V100 that has the 30 GiB, and an A100 that the plan does not use",
        ),
        pytest.param(
            ("A100", "4090"),
            "fail",
            "needs 30.0 GiB on each GPU, but the smallest chosen GPU",
            id="an RTX 4090 does not have the 30 GiB of the plan",
        ),
        pytest.param(
            ("A100",),
            "fail",
            "the plan is for 2 GPUs on each node",
            id="one GPU where the plan has two",
        ),
    ],
)
def test_a_plan_on_another_machine(cards: tuple[str, ...], status: str, words: str) -> None:
    found = on_gpus(RunNeeds(plan=PLAN), gpus(*cards))
    assert found.status.value == status
    assert words in found.message


def test_host_memory_of_an_offload() -> None:
    fact = demand(run("7B", OFFLOAD), gpus("A100"))
    assert fact.pinned_rounding_bytes > 0
    need = fact.host_bytes / GIB
    assert on_host(fact, need + 1).status.value == "ok"
    low = on_host(fact, need - 8, total=512)
    assert low.status.value == "fail"
    assert "its cgroup allows" in low.message
    assert "lost to the rounding of pinned blocks" in low.message
    assert '`"pin_memory": false`' in low.hint
    busy = on_host(fact, need + 100, free=need - 1)
    assert (busy.status.value, "are free" in busy.message or "free" in busy.message) == (
        "warn",
        True,
    )


def test_a_run_without_offload_is_not_told_to_offload_less() -> None:
    fact = demand(run("7B"), gpus("A100"))
    assert set(fact.host_items) <= {"processes", "weights being loaded", "data loader workers"}
    found = on_host(fact, fact.host_bytes / GIB - 4, total=512)
    assert found.status.value in ("warn", "fail")
    assert "offload less" not in found.hint
    assert "`torch_dtype=torch.bfloat16`" in found.hint
    offloads = demand(run("7B", OFFLOAD), gpus("A100"))
    assert "offload less" in on_host(offloads, offloads.host_bytes / GIB - 8, total=512).hint


def test_swap_does_not_help() -> None:
    fact = demand(run("7B", OFFLOAD), gpus("A100"))
    found = on_host(fact, 16, total=16, swap=1024 * GIB)
    assert found.status.value == "fail"
    assert "cannot be swapped out" in found.effect


def test_huge_pages_are_not_memory_for_the_run() -> None:
    fact = demand(run("7B", OFFLOAD), gpus("A100"))
    total = fact.host_bytes / GIB + 10
    assert on_host(fact, total, total=total).status.value == "ok"
    held = MemoryDetail(hugepages_bytes=64 * GIB, hugepages_free_bytes=64 * GIB)
    assert on_host(fact, total, total=total, detail=held).status.value == "fail"


def test_wsl_gets_its_own_advice() -> None:
    wsl = OsInfo(system="Linux", release="5", machine="x86_64", hostname="n", wsl=True)
    found = on_host(demand(run("7B", OFFLOAD), gpus("A100")), 16, os=wsl)
    assert "`.wslconfig`" in found.hint


def test_nvme_takes_the_optimizer_out_of_host_memory() -> None:
    zero = {"stage": 3, "offload_optimizer": {"device": "nvme", "nvme_path": "/n"}}
    there = demand(run("7B", {"zero_optimization": zero}), gpus("A100"))
    ram = {"stage": 3, "offload_optimizer": {"device": "cpu"}}
    here = demand(run("7B", {"zero_optimization": ram}), gpus("A100"))
    assert there.host_bytes < here.host_bytes - 50 * GIB


def test_pinning_was_no_default_before_0_19_5() -> None:
    old = memory_demand.function(
        run("7B", OFFLOAD),
        gpus("A100"),
        NO_ENV,
        ABSENT,
        DeepSpeedInstall(version="0.16.0"),
        *NOT_READ,
    )
    assert old.pinned_rounding_bytes == 0


def test_what_the_config_says_of_precision_and_groups() -> None:
    def of(**config: Any) -> Setting:
        return setting_of(config, world=8, nodes=1, on_gpu=True, pinned=True, hidden=4096)

    pure = {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True}
    assert (of(bf16=pure).master_width, of(bf16=pure).state_bytes) == (2, 4)
    assert (of(bfloat16=pure).precision, of(bf16={"enabled": True}).master_width) == ("bf16", 4)
    assert of(fp16={"enabled": True, "fp16_master_weights_and_grads": True}).master_width == 2
    kept = of(bf16={"enabled": True}, data_types={"grad_accum_dtype": "fp32"})
    assert (kept.kept_width, kept.sent_width) == (4, 2)
    assert of(bf16={"enabled": True}, communication_data_type="fp32").sent_width == 4
    zero = of(
        zero_optimization={
            "stage": 3,
            "zero_hpz_partition_size": 4,
            "sub_group_size": 1e8,
            "reduce_bucket_size": "auto",
            "cpu_offload": True,
        }
    )
    assert (zero.secondary, zero.sub_group, zero.bucket) == (4, 10**8, 4096**2)
    assert zero.offload == "optimizer"


def test_what_is_not_counted_is_said() -> None:
    config = {
        "zero_optimization": {
            "stage": 3,
            "zero_quantized_weights": True,
            "zero_quantized_gradients": False,
            "mics_shard_size": 4,
            "zenflow": {"topk_ratio": 0.05},
            "offload_optimizer": {"device": "cpu", "super_offload": True, "ratio": 0.8},
        },
        "torch_autocast": {"enabled": True},
        "expert_parallel": {"enabled": True, "autoep_size": 4},
        "tensor_parallel": {"enabled": False},
        "compile": {"deepcompile": True},
        "sequence_parallel_size": 2,
        "activation_checkpointing": {"cpu_checkpointing": True, "partition_activations": False},
        "optimizer": {"type": "OneBitAdam"},
    }
    assert list(left_out(config)) == [
        "zero_optimization.zero_quantized_weights",
        "zero_optimization.zenflow",
        "zero_optimization.mics_shard_size",
        "zero_optimization.offload_optimizer.super_offload",
        "zero_optimization.offload_optimizer.ratio",
        "expert_parallel",
        "compile",
        "torch_autocast",
        "sequence_parallel_size",
        "activation_checkpointing.cpu_checkpointing",
        "the state of optimizer OneBitAdam (taken to be Adam's)",
    ]
    fact = demand(run("7B", config), gpus("A100"))
    assert "`torch_autocast` is not counted" in fact.assumed
    assert not list(left_out({"bf16": {"enabled": True}, "optimizer": {"type": "AdamW"}}))


def test_older_releases_take_more() -> None:
    def of(release: str) -> dict[str, int]:
        install = DeepSpeedInstall(version=release)
        fact: MemoryDemand = memory_demand.function(
            run("llama-3-8b", OFFLOAD), gpus("A100"), NO_ENV, ABSENT, install, *NOT_READ
        )
        return fact.gpu_items

    assert of("0.19.5")["overflow check"] == 11 * 128256 * 4096
    assert "overflow check" not in of("0.19.6")


@pytest.mark.parametrize(
    ("command", "env", "ranks", "nodes"),
    [
        pytest.param(ABSENT, NO_ENV, 4, 1, id="one rank for each GPU of the node"),
        pytest.param(
            ABSENT,
            Environment(variables={"CUDA_VISIBLE_DEVICES": "2,3"}),
            2,
            1,
            id="one rank for each visible GPU",
        ),
        pytest.param(
            LaunchCommand(launcher="torchrun", num_gpus=2, num_nodes=3),
            NO_ENV,
            2,
            3,
            id="torchrun starts two ranks on each of three nodes",
        ),
    ],
)
def test_ranks_of_the_run(command: Any, env: Any, ranks: int, nodes: int) -> None:
    fact = demand(run("7B", STAGE2), gpus(*["A100"] * 4), env, command)
    assert fact.ranks_here == ranks
    assert ("3 nodes" in fact.what) == (nodes == 3)


def test_without_a_gpu_everything_is_host_memory() -> None:
    fact = demand(run("7B", STAGE2), Gpus())
    assert (fact.on_gpu, fact.gpu_bytes) == (False, 0)
    assert fact.host_bytes > 80 * GIB


def test_nothing_asked_nothing_computed() -> None:
    with pytest.raises(HostError):
        demand(RunNeeds(config=STAGE2))


def test_shape_survives_a_snapshot() -> None:
    told = shape("qwen3-8b")
    fields = {field.name for field in dataclasses.fields(PRESETS["qwen3-8b"])}
    assert fields <= told.keys()
    assert told["parameters"] == PRESETS["qwen3-8b"].parameters


def _family(**changes: Any) -> dict[str, Any]:
    return {
        "model_type": "deepseek_v2", "hidden_size": 2048, "intermediate_size": 10944,
        "moe_intermediate_size": 1408, "n_routed_experts": 64, "n_shared_experts": 2,
        "num_experts_per_tok": 6, "num_hidden_layers": 27, "num_attention_heads": 16,
        "num_key_value_heads": 16, "kv_lora_rank": 512, "q_lora_rank": None,
        "qk_rope_head_dim": 64, "qk_nope_head_dim": 128, "v_head_dim": 128,
        "first_k_dense_replace": 1, "vocab_size": 102400,
    } | changes  # fmt: skip


VISION = {
    "model_type": "qwen2_vl", "hidden_size": 3584, "intermediate_size": 18944,
    "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
    "vocab_size": 152064, "vision_config": {"depth": 32, "embed_dim": 1280},
}  # fmt: skip


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(_family(), id="latent attention and experts"),
        pytest.param(VISION, id="a vision tower beside the text layers"),
    ],
)
def test_a_shape_with_parts_survives_the_snapshot(config: dict[str, Any], tmp_path: Path) -> None:
    """Latent attention, experts and towers come back from JSON as they were."""
    (tmp_path / "config.json").write_text(json.dumps(config))
    needs = run(str(tmp_path), STAGE2)
    again = msgspec.json.decode(msgspec.json.encode(needs), type=RunNeeds)
    model = from_config(config, tmp_path.name)
    assert again.model is not None
    assert shape_of(again.model) == model
    assert (
        demand(again, gpus(*["A100"] * 8)).gpu_bytes == demand(needs, gpus(*["A100"] * 8)).gpu_bytes
    )


def test_what_fits_is_told_with_and_without_recomputation() -> None:
    fact = demand(run("qwen2.5-1.5b", STAGE2, sequence=16384), gpus("A100", "A100"))
    assert {row.gpus for row in fact.fits} == {1, 2, 4, 8}
    assert fact.plain_bytes > fact.gpu_bytes
    assert sum(fact.plain_items.values()) == fact.plain_bytes
    for plain, again in zip(fact.fits[:4], fact.fits[4:], strict=True):
        assert (plain.gpus, plain.checkpointing, again.checkpointing) == (again.gpus, False, True)
        assert plain.micro_batch <= again.micro_batch
        assert plain.sequence <= again.sequence
    text = "\n".join(demand_lines(fact))
    assert "checkpointing       without" in text
    assert "what fits: largest micro-batch" in text
    assert demand(run("7B", STAGE2)).fits == ()  # without GPUs nothing is said


def test_the_hint_names_the_model_that_was_given() -> None:
    needs = run("70B", STAGE2, model_given="my models/70b")
    finding = on_gpus(needs, gpus("A100"))
    assert "`dsdoctor recommend --model 'my models/70b'`" in finding.hint
