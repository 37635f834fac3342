"""The memory of the model that the command names: claimed only where it is certain."""

from __future__ import annotations

import json
from typing import Any

import pytest

from dsdoctor.api import (
    Environment,
    Finding,
    Hostfile,
    MemoryDemand,
    MemoryDetail,
    Missing,
    Place,
    Storage,
)
from dsdoctor.job.request import shape
from dsdoctor.job.resolve import resolve
from dsdoctor.model.facts.launch import HostEntry
from dsdoctor.model.facts.machine import Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.probes.command_line import parse_command, with_accelerate
from dsdoctor.probes.demand import memory_demand
from dsdoctor.probes.training_job import training_job
from dsdoctor.testing import FakeHost, judge, read
from dsdoctor_checks.memory import (
    hugepages_reserved,
    plan_exceeds_gpu_memory,
    plan_exceeds_host_memory,
)
from dsdoctor_checks.storage import disk_full
from tests.checks.machines import ABSENT, NO_ENV, gpus
from tests.probes.test_training_job import PLAIN

GIB = 1 << 30
ZERO2 = {"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 2}}
ZERO3 = {"bf16": {"enabled": "auto"}, "zero_optimization": {"stage": 3}}
OFFLOAD = {
    "bf16": {"enabled": True},
    "zero_optimization": {
        "stage": 3, "offload_optimizer": {"device": "cpu"}, "offload_param": {"device": "cpu"},
    },
}  # fmt: skip
FROZEN = PLAIN.replace("    trainer =", "    model.lm_head.requires_grad_(False)\n    trainer =")


def facts(
    model: str, config: dict[str, Any] | None, script: str = PLAIN, **given: Any
) -> dict[str, Any]:
    words = given.pop("command", ("deepspeed", "--num_gpus", "8", "t.py"))
    options = ("--model_name_or_path", model, "--deepspeed", "ds.json")
    files = {"/w/t.py": script, "/w/ds.json": json.dumps(config)} if config else {"/w/t.py": script}
    host = FakeHost(files=files, env={"HOME": "/home/u"})
    more = given.pop("more", ())
    run = resolve(RunNeeds(cwd="/w", command=(*words, *options, *more)), host)
    command = parse_command(run.command)
    job = read(training_job, host, run_needs=run, launch_command=command)
    cards = given.pop("cards", gpus(*["A100"] * 8))
    demand = read(
        memory_demand, host, run_needs=run, launch_command=command, training_job=job, gpus=cards,
        **{"environment": NO_ENV, **given},
    )  # fmt: skip
    return {
        "run_needs": run, "launch_command": command, "training_job": job, "gpus": cards,
        "memory_demand": demand,
    }  # fmt: skip


def demanded(run: RunNeeds, host: FakeHost) -> MemoryDemand:
    run = resolve(run, host)
    command = parse_command(run.command)
    job = read(training_job, host, run_needs=run, launch_command=command)
    found = read(
        memory_demand, host, run_needs=run, launch_command=command, training_job=job,
        gpus=gpus(*["A100"] * 8), environment=NO_ENV,
    )  # fmt: skip
    assert isinstance(found, MemoryDemand), found
    return found


def on_gpu(*args: Any, **given: Any) -> Finding:
    made = facts(*args, **given)
    names = ("run_needs", "gpus", "memory_demand")
    found = judge(
        plan_exceeds_gpu_memory.gpu_memory_is_enough,
        environment=NO_ENV,
        torch_live=ABSENT,
        **{name: made[name] for name in names},
    )
    (finding,) = found.findings
    return finding


def test_a_model_that_never_fits_fails() -> None:
    found = on_gpu("meta-llama/Llama-3.1-70B", ZERO2)
    assert found.status.value == "fail"
    assert "meta-llama/Llama-3.1-70B, ZeRO-2 on 8 GPUs needs 279.7 GiB on each GPU" in found.message
    assert found.hint == (
        "run `dsdoctor recommend --model meta-llama/Llama-3.1-70B` for a ZeRO stage, offload and"
        " micro-batch that fit"
    )
    assert "assumed" not in found.effect


@pytest.mark.parametrize(
    ("model", "config", "script"),
    [
        pytest.param("meta-llama/Llama-3.1-8B", ZERO3, PLAIN, id="it fits"),
        pytest.param("meta-llama/Llama-3.1-70B", OFFLOAD, PLAIN, id="it is offloaded"),
        pytest.param("meta-llama/Llama-3.1-70B", ZERO2, FROZEN, id="a part is frozen"),
        pytest.param("meta-llama/Llama-3.1-8B", ZERO2, FROZEN, id="adapters would fit"),
    ],
)
def test_what_may_fit_is_silent(model: str, config: dict[str, Any], script: str) -> None:
    assert on_gpu(model, config, script).status.value == "ok"


def test_long_samples_are_no_reason() -> None:
    """Samples may be shorter than the longest that is allowed."""
    words = ("--max_seq_length", "32768", "--per_device_train_batch_size", "16")
    found = facts("meta-llama/Llama-3.1-8B", ZERO3, more=words)
    demand = found["memory_demand"]
    assert demand.gpu_bytes > 80 * GIB > demand.gpu_state_bytes
    assert on_gpu("meta-llama/Llama-3.1-8B", ZERO3, more=words).status.value == "ok"


def test_not_even_adapters_fit() -> None:
    found = on_gpu("meta-llama/Llama-3.1-405B", ZERO2, FROZEN)
    assert found.status.value == "fail"
    assert "even for LoRA adapters on 4-bit weights" in found.message


def test_a_size_in_a_name_is_said_to_be_assumed() -> None:
    found = on_gpu("lmsys/vicuna-33b-v1.3", ZERO2)
    assert found.status.value == "fail"
    assert found.effect.endswith("(assumed: the size that the model's name states)")


@pytest.mark.parametrize(
    ("config", "words", "given"),
    [
        pytest.param(None, ("deepspeed", "t.py"), {}, id="no config"),
        pytest.param({**ZERO2, "tensor_parallel": {"autotp_size": 8}}, ("deepspeed", "t.py"), {},
                     id="tensor parallel"),
        pytest.param(ZERO2, ("torchrun", "--nnodes", "$N", "--nproc_per_node", "8", "t.py"), {},
                     id="a number of nodes that only a shell knows"),
        pytest.param(ZERO2, ("deepspeed", "--hostfile", "hosts", "t.py"), {},
                     id="a hostfile that cannot be read"),
        pytest.param(ZERO2, ("srun", "python", "t.py"), {}, id="another launcher"),
    ],
)  # fmt: skip
def test_what_is_not_known_is_not_computed(
    config: dict[str, Any] | None, words: tuple[str, ...], given: dict[str, Any]
) -> None:
    found = facts("llama-3-70b", config, command=words, **given)["memory_demand"]
    assert isinstance(found, Missing)


HOSTS = Hostfile(
    path="hosts", entries=tuple(HostEntry(host=f"n{i}", slots=8, line=i + 1) for i in range(4))
)


@pytest.mark.parametrize(
    ("words", "given", "ranks", "what"),
    [
        pytest.param(("deepspeed", "t.py"), {"hostfile": HOSTS}, 8, "of each of 4 nodes",
                     id="the hosts of the hostfile"),
        pytest.param(("deepspeed", "--num_nodes", "2", "t.py"), {"hostfile": HOSTS}, 8,
                     "of each of 2 nodes", id="fewer of them"),
        pytest.param(("deepspeed", "--include", "n0:0,1", "t.py"), {"hostfile": HOSTS}, 2,
                     "on 2 GPUs", id="some GPUs of one"),
        pytest.param(("torchrun", "--nnodes", "2", "--nproc_per_node", "4", "t.py"), {}, 4,
                     "of each of 2 nodes", id="torchrun"),
        pytest.param(("deepspeed", "t.py"), {}, 8, "on 8 GPUs", id="all GPUs"),
        pytest.param(("deepspeed", "t.py"),
                     {"environment": Environment(variables={"CUDA_VISIBLE_DEVICES": "0,1"})}, 2,
                     "on 2 GPUs", id="visible GPUs"),
        pytest.param(
            ("accelerate", "launch", "--num_processes", "16", "--num_machines", "2", "t.py"), {}, 8,
            "of each of 2 nodes", id="accelerate",
        ),
    ],
)  # fmt: skip
def test_states_are_divided_among_all_ranks(
    words: tuple[str, ...], given: dict[str, Any], ranks: int, what: str
) -> None:
    found = facts("llama-3-8b", ZERO3, command=words, **given)["memory_demand"]
    assert isinstance(found, MemoryDemand), found
    assert found.ranks_here == ranks
    assert what in found.what


@pytest.mark.parametrize(
    ("words", "ranks"),
    [
        pytest.param(("env", "NPROC_PER_NODE=4", "NNODES=2", "swift"), 4, id="variables"),
        pytest.param(("swift",), 1, id="ms-swift starts one"),
        pytest.param(("llamafactory-cli",), 8, id="LLaMA-Factory starts one for each GPU"),
    ],
)
def test_trainers_that_start_the_ranks(words: tuple[str, ...], ranks: int) -> None:
    method = ("--train_type", "full", "--finetuning_type", "full")
    verb = ("sft",) if words[-1] == "swift" else ("train",)
    found = facts("Qwen/Qwen2.5-7B", ZERO3, command=(*words, *verb, *method))["memory_demand"]
    assert isinstance(found, MemoryDemand), found
    assert found.ranks_here == ranks
    assert ("2 nodes" in found.what) == ("NNODES=2" in words)


@pytest.mark.parametrize(
    ("preset", "what"),
    [("zero2", "ZeRO-2 on"), ("zero3_offload", "ZeRO-3 with optimizer and parameters offloaded")],
    ids=["a stage", "offload"],
)
def test_a_config_that_comes_with_the_trainer(preset: str, what: str) -> None:
    words = ("env", "NPROC_PER_NODE=8", "swift", "sft", "--train_type", "full", "--deepspeed")
    command = (*words, preset, "--model", "Qwen/Qwen2.5-7B")
    demand = demanded(RunNeeds(cwd="/w", command=command), FakeHost(env={"HOME": "/home/u"}))
    assert what in demand.what


def test_options_of_the_command_complete_a_given_model() -> None:
    more = ("--max_seq_length", "4096", "--per_device_train_batch_size", "3")
    words = ("deepspeed", "--num_gpus", "8", "t.py", "--deepspeed", "ds.json", *more)
    given = RunNeeds(cwd="/w", command=words, model=shape("llama-3-8b"), model_given="llama-3-8b")
    host = FakeHost(files={"/w/t.py": PLAIN, "/w/ds.json": json.dumps(ZERO3)})
    demand = demanded(given, host)
    assert (demand.source, demand.assumed) == ("model", ("activations are recomputed",))


def test_hosts_of_the_hostfile_share_a_given_model_too() -> None:
    given: dict[str, Any] = {"model": shape("llama-3-8b"), "model_given": "llama-3-8b"}
    words = ("deepspeed", "t.py", "--deepspeed", "ds.json")
    host = FakeHost(files={"/w/t.py": PLAIN, "/w/ds.json": json.dumps(ZERO3)})
    run = resolve(RunNeeds(cwd="/w", command=words, **given), host)
    found = read(
        memory_demand, host, run_needs=run, launch_command=parse_command(words), hostfile=HOSTS,
        gpus=gpus(*["A100"] * 8), environment=NO_ENV,
    )  # fmt: skip
    assert isinstance(found, MemoryDemand), found
    assert "on 8 GPUs of each of 4 nodes" in found.what


def test_huge_pages_are_held_against_what_is_certain() -> None:
    """Each rank may load the weights as a whole, or not: a command does not say."""
    demand = facts("meta-llama/Llama-3.1-70B", ZERO2)["memory_demand"]
    assert demand.host_bytes > 900 * GIB > demand.host_least_bytes
    found = judge(
        hugepages_reserved.no_memory_is_held,
        memory_demand=demand,
        resources=Resources(
            cpus_logical=8, cpus_usable=8, memory_total_bytes=500 * GIB,
            memory_available_bytes=300 * GIB,
        ),
        memory_detail=MemoryDetail(hugepages_bytes=64 * GIB, hugepages_free_bytes=64 * GIB),
    )  # fmt: skip
    assert found.status == "ok"


def in_memory(size: int, script: str = PLAIN, config: dict[str, Any] = OFFLOAD) -> Finding:
    made = facts("meta-llama/Llama-3.1-70B", config, script)
    memory = Resources(
        cpus_logical=8, cpus_usable=8, memory_total_bytes=size, memory_available_bytes=size
    )
    found = judge(
        plan_exceeds_host_memory.host_memory_is_enough,
        memory_demand=made["memory_demand"],
        resources=memory,
    )
    return found.worst


def test_memory_of_the_host() -> None:
    assert in_memory(512 * GIB).status.value == "fail"
    assert in_memory(4096 * GIB).status.value == "ok"
    assert in_memory(512 * GIB, FROZEN).status.value == "ok"  # adapters need less
    short = in_memory(16 * GIB, FROZEN)
    assert short.status.value == "fail"
    assert "even for LoRA adapters on 4-bit weights" in short.message
    assert in_memory(512 * GIB, config=ZERO3).status.value == "ok"  # how it loads is not known


@pytest.mark.parametrize(
    ("more", "script", "status"),
    [
        pytest.param((), PLAIN, "warn", id="states are saved"),
        pytest.param(("--save_strategy", "no"), PLAIN, "ok", id="nothing is saved"),
        pytest.param(("--save_only_model",), PLAIN, "ok", id="weights are saved"),
        pytest.param((), FROZEN, "ok", id="it is not known what is trained"),
    ],
)
def test_room_for_a_checkpoint(more: tuple[str, ...], script: str, status: str) -> None:
    made = facts("meta-llama/Llama-3.1-8B", ZERO3, script, more=more)
    place = Place(
        purpose="--output_dir", path="out", kind="dir", mount="/", total_bytes=500 * GIB,
        free_bytes=90 * GIB,
    )  # fmt: skip
    names = ("run_needs", "training_job", "launch_command")
    given = {name: made[name] for name in names}
    found = judge(disk_full.places_have_room, storage=Storage(places=(place,)), **given).worst
    assert found.status.value == status
    if status == "warn":
        assert "but one checkpoint of this model needs 104.7 GiB" in found.message


def test_groups_of_one_parameter_are_not_listed() -> None:
    zero: Any = OFFLOAD["zero_optimization"]
    small = {**OFFLOAD, "zero_optimization": {**zero, "sub_group_size": 1}}
    usual = facts("llama-3-70b", OFFLOAD)["memory_demand"]
    found = facts("llama-3-70b", small)["memory_demand"]
    assert 0.5 < found.host_state_bytes / usual.host_state_bytes < 2


@pytest.mark.parametrize(
    ("words", "ranks", "what"),
    [
        pytest.param((), 8, "of each of 4 nodes", id="all of the file"),
        pytest.param(("--num_processes", "16"), 4, "of each of 4 nodes", id="fewer ranks"),
        pytest.param(
            ("--num_processes", "8", "--num_machines", "1"), 8, "on 8 GPUs", id="one node"
        ),
    ],
)
def test_ranks_of_accelerates_file(words: tuple[str, ...], ranks: int, what: str) -> None:
    command = ("accelerate", "launch", "--config_file", "a.yaml", *words, "t.py")
    options = ("--model_name_or_path", "llama-3-8b", "--deepspeed", "ds.json")
    files = {
        "/w/t.py": PLAIN, "/w/ds.json": json.dumps(ZERO3),
        "/w/a.yaml": "num_processes: 32\nnum_machines: 4\n",
    }  # fmt: skip
    host = FakeHost(files=files, env={"HOME": "/home/u"})
    run = resolve(RunNeeds(cwd="/w", command=(*command, *options)), host)
    parsed = with_accelerate(parse_command(run.command), {"num_processes": 32, "num_machines": 4})
    job = read(training_job, host, run_needs=run, launch_command=parsed)
    found = read(
        memory_demand, host, run_needs=run, launch_command=parsed, training_job=job,
        gpus=gpus(*["A100"] * 8), environment=NO_ENV,
    )  # fmt: skip
    assert isinstance(found, MemoryDemand), found
    assert found.ranks_here == ranks
    assert what in found.what
