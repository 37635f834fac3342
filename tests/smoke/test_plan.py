"""From a command line to a run: pure functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dsdoctor.errors import UsageError
from dsdoctor.machines.this_machine import MachineFacts
from dsdoctor.model.facts.base import Missing, Why
from dsdoctor.model.facts.gpu import Gpu, Gpus
from dsdoctor.model.facts.machine import OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.recommend import files
from dsdoctor.recommend.models import resolve
from dsdoctor.recommend.planning import PlanOptions, machine_of, recommend
from dsdoctor.smoke import job as planning
from dsdoctor.smoke import launcher, predict, request

CPU = {"device": "cpu"}


def gpu(index: int) -> Gpu:
    return Gpu(
        index=index, uuid=f"GPU-0000000{index}-0000-0000-0000-000000000000", name="NVIDIA A100",
        memory_total_bytes=80 << 30, memory_free_bytes=79 << 30, cc_major=8, cc_minor=0,
    )  # fmt: skip


def seen(
    count: int = 0, *, broken: int = 0, asked: tuple[str, ...] = (), visible: str | None = None
) -> MachineFacts:
    resources = Resources(
        cpus_logical=8, cpus_usable=8, memory_total_bytes=64 << 30, memory_available_bytes=60 << 30
    )
    return MachineFacts(
        gpus=Gpus(gpus=tuple(gpu(index) for index in range(count)))
        if count
        else Missing(why=Why.ABSENT, detail="no driver"),
        resources=resources,
        os=OsInfo(system="Linux", release="6", machine="x86_64", hostname="n"),
        needs=RunNeeds(gpus=asked),
        nvidia_devices=broken,
        visible=visible,
    )


def config(folder: Path, **entries: Any) -> str:
    path = folder / "c.json"
    path.write_text(json.dumps(entries))
    return str(path)


def words(made: planning.SmokePlan, folder: Path) -> list[str]:
    return list(launcher.command(made, "/venv/bin/python", folder))


def test_without_a_gpu_it_runs_on_two_cpus(tmp_path: Path) -> None:
    made = request.plan(request.SmokeOptions(), seen)
    assert (made.device, made.world, made.launch.stage) == ("cpu", 2, 1)
    argv = words(made, tmp_path)
    assert argv[:3] == ["/venv/bin/python", "-m", "deepspeed.launcher.runner"]
    assert argv[3:5] == ["--num_gpus", "2"]
    assert argv[-2:] == ["--job", str(tmp_path / "job.json")]
    assert made.launch.env["DS_ACCELERATOR"] == "cpu"


def test_gpus_that_cannot_be_used_are_not_passed_over(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="4 NVIDIA GPUs are installed, but none can be used"):
        request.plan(request.SmokeOptions(), lambda: seen(broken=4))
    assert request.plan(request.SmokeOptions(cpu=3), lambda: seen(broken=4)).world == 3


def test_gpus_that_the_environment_hides_are_not_used(tmp_path: Path) -> None:
    hidden = request.plan(request.SmokeOptions(), lambda: seen(4, visible="3,1"))
    assert hidden.launch.gpu_ids == (1, 3)
    with pytest.raises(UsageError, match="CUDA_VISIBLE_DEVICES=3,1` leaves 2"):
        request.plan(request.SmokeOptions(gpus="0"), lambda: seen(4, asked=("0",), visible="3,1"))
    with pytest.raises(UsageError, match="4 NVIDIA GPUs are installed, but none can be used"):
        request.plan(request.SmokeOptions(), lambda: seen(4, broken=4, visible=""))


def test_guide_a6_the_debug_launch_is_ten_steps_of_one_small_batch() -> None:
    made = request.plan(request.SmokeOptions(), seen)
    assert made.job["steps"] == 10
    assert (made.job["micro_batch"], made.job["accumulation"]) == (2, 1)
    assert made.job["ds_config"]["train_batch_size"] == 4


def test_guide_a5_c1_a_preset_is_shrunk_and_says_so() -> None:
    made = request.plan(request.SmokeOptions(model="llama-3-8b"), lambda: seen(4))
    assert made.world == 4
    assert made.job["shape"]["gated"]
    assert not made.job["shape"]["norm_bias"]
    assert made.job["shape"]["heads"] // made.job["shape"]["kv_heads"] == 4
    assert predict.shape_of(made).parameters < 2_000_000
    large = request.plan(request.SmokeOptions(model="gpt2"), lambda: seen(4))
    assert large.launch.ds_config["train_batch_size"] > large.job["ds_config"]["train_batch_size"]
    assert any("micro-batch" in line for line in large.changed)
    full = request.plan(
        request.SmokeOptions(model="gpt2", full_size=True, steps=3), lambda: seen(1)
    )
    assert predict.shape_of(full).parameters == resolve("gpt2").parameters
    assert full.job["ds_config"] == full.launch.ds_config
    assert full.job["lr"] is None
    assert full.changed == ()


def test_guide_b3_the_launch_names_exactly_the_chosen_gpus(tmp_path: Path) -> None:
    made = request.plan(request.SmokeOptions(gpus="1,3"), lambda: seen(4, asked=("1", "3")))
    argv = words(made, tmp_path)
    assert argv[argv.index("--include") + 1] == "localhost:1,3"
    assert "--num_gpus" not in argv
    assert "CUDA_VISIBLE_DEVICES" not in made.launch.env
    assert made.launch.env["CUDA_DEVICE_ORDER"] == "PCI_BUS_ID"
    assert [uuid[:12] for uuid in made.uuids] == ["GPU-00000001", "GPU-00000003"]


def test_guide_e3_torchrun_gets_the_same_gpus_by_variable(tmp_path: Path) -> None:
    made = request.plan(
        request.SmokeOptions(gpus="1,3", launcher="torchrun"), lambda: seen(4, asked=("1", "3"))
    )
    argv = words(made, tmp_path)
    assert argv[:3] == ["/venv/bin/python", "-m", "torch.distributed.run"]
    assert argv[argv.index("--nproc-per-node") + 1] == "2"
    assert made.launch.env["CUDA_VISIBLE_DEVICES"] == "1,3"


@pytest.mark.parametrize(
    ("entries", "micro", "passes"),
    [
        pytest.param({"train_batch_size": 8}, 2, 1, id="a global batch alone"),
        pytest.param(
            {"train_batch_size": 128, "train_micro_batch_size_per_gpu": 1},
            1,
            2,
            id="a large global batch",
        ),
        pytest.param(
            {"train_micro_batch_size_per_gpu": 16, "gradient_accumulation_steps": 32},
            2,
            2,
            id="a large micro-batch and accumulation",
        ),
        pytest.param({}, 1, 1, id="no batch size"),
    ],
)
def test_guide_b6_the_triangle_holds_after_shrinking(
    tmp_path: Path, entries: dict[str, Any], micro: int, passes: int
) -> None:
    made = request.plan(request.SmokeOptions(cpu=2, config=config(tmp_path, **entries)), seen)
    assert (made.job["micro_batch"], made.job["accumulation"]) == (micro, passes)
    assert made.job["ds_config"]["train_batch_size"] == micro * passes * 2


def test_guide_b6_a_wrong_triangle_stays_as_it_is(tmp_path: Path) -> None:
    wrong = {
        "train_batch_size": 32, "train_micro_batch_size_per_gpu": 1,
        "gradient_accumulation_steps": 4,
    }  # fmt: skip
    made = request.plan(request.SmokeOptions(cpu=2, config=config(tmp_path, **wrong)), seen)
    kept = made.job["ds_config"]
    assert {key: kept[key] for key in wrong} == wrong


def test_auto_is_resolved_and_told(tmp_path: Path) -> None:
    path = config(
        tmp_path, train_batch_size="auto", bf16={"enabled": "auto"},
        optimizer={"type": "AdamW", "params": {"lr": "auto"}},
    )  # fmt: skip
    made = request.plan(request.SmokeOptions(cpu=2, config=path), seen)
    assert "auto" not in json.dumps(made.job["ds_config"])
    assert sum('"auto"' in line for line in made.changed) == 3


@pytest.mark.parametrize(
    ("zero", "expected"),
    [
        pytest.param({"stage": 2, "offload_optimizer": CPU}, (2, "optimizer"), id="optimizer"),
        pytest.param(
            {"stage": 3, "offload_optimizer": CPU, "offload_param": CPU},
            (3, "optimizer+parameters"),
            id="optimizer and parameters",
        ),
        pytest.param(
            {"stage": 2, "offload_param": CPU}, (2, "none"), id="parameters below stage 3"
        ),
        pytest.param(
            {"stage": 2, "offload_optimizer": {"device": "none"}}, (2, "none"), id="switched off"
        ),
    ],
)
def test_offload_of_a_config(zero: dict[str, Any], expected: tuple[int, str]) -> None:
    assert planning.offload_of({"zero_optimization": zero}) == expected


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"cpu": 2, "gpus": "0"}, "are mutually exclusive"),
        ({"plan": "x.json", "model": "gpt2"}, "are mutually exclusive"),
        ({"full_size": True}, "needs a model to build"),
        ({"plan": "absent.json"}, "absent.json` cannot be read"),
        ({"config": "absent.json"}, "absent.json` cannot be read"),
        ({"hostfile": "absent"}, "absent` cannot be read"),
    ],
)
def test_misuse_is_one_line(asked: dict[str, Any], words: str) -> None:
    with pytest.raises(UsageError, match=words) as caught:
        request.plan(request.SmokeOptions(**asked), seen)
    assert "\n" not in str(caught.value)


def test_saved_plan_is_read_back(tmp_path: Path) -> None:
    plan = recommend(
        machine_of(gpu_gib=80, count=2, host_gib=500),
        resolve("gpt2-xl"),
        PlanOptions(sequence=1024),
    )
    files.write(plan, tmp_path)
    path = str(tmp_path / "launch.json")
    made = request.plan(request.SmokeOptions(plan=path, full_size=True), lambda: seen(2))
    assert made.launch == plan
    assert predict.shape_of(made).parameters == plan.model.parameters
    assert made.job["sequence"] == 1024
    with pytest.raises(UsageError, match="GPU 1, which this machine does not have"):
        request.plan(request.SmokeOptions(plan=path), lambda: seen(1))
    (tmp_path / "launch.json").write_text("{}")
    with pytest.raises(UsageError, match="is not a launch plan"):
        request.plan(request.SmokeOptions(plan=path), lambda: seen(2))


def test_guide_b5_the_prediction_of_a_run_is_that_of_the_plan() -> None:
    """What smoke compares with is the figure that `recommend` showed, less what its model saves.

    Smoke's own model calls torch's GELU and no dropout, where GPT-2 of transformers keeps five
    tensors of the inner width and two masks: 29 h elements a token against 16 h.
    """
    made = request.plan(request.SmokeOptions(model="gpt2-xl", full_size=True), lambda: seen(4))
    (chosen,) = [row for row in made.launch.memory.options if row.verdict == "chosen"]
    outside = sum(item.bytes for item in chosen.gpu if item.name in predict.OUTSIDE)
    predicted = predict.device_peak(made)
    assert predicted is not None
    tokens = chosen.micro_batch * made.launch.sequence
    saved = 2 * tokens * 48 * 1600 * (29 - 16)
    assert predicted + outside + saved == pytest.approx(chosen.gpu_bytes, rel=0.05)


def test_guide_c6_d1_sequence_and_small_gpus_reach_the_run() -> None:
    for length in (1024, 512):
        plan = recommend(
            machine_of(gpu_gib=6, host_gib=64), resolve("gpt2"), PlanOptions(sequence=length)
        )
        made = planning.make(plan, resolve("gpt2"), steps=3, full_size=True)
        assert made.job["sequence"] == length
        assert made.job["precision"] == plan.precision
        assert made.job["micro_batch"] == plan.micro_batch


def test_guide_e4_cpus_of_the_cgroup_bound_the_threads() -> None:
    made = request.plan(request.SmokeOptions(cpu=2), seen)
    assert made.launch.env["OMP_NUM_THREADS"] == "4"


def test_plan_without_deepspeed_on_its_line_is_refused(tmp_path: Path) -> None:
    made = request.plan(request.SmokeOptions(cpu=2), seen)
    odd = msgspec.structs.replace(made.launch, argv=("accelerate", "launch", "train.py"))
    with pytest.raises(UsageError, match="accelerate"):
        launcher.command(
            planning.make(odd, planning.TINY, steps=3, full_size=False),
            "/venv/bin/python",
            tmp_path,
        )
