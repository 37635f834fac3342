"""GPUs of single tasks of a Slurm step, of steps without any, and of the shell of salloc.

The variables are those that a Slurm 22.05 with four GPUs set (tests/slurm/, `gres.conf` with device
files), in the batch script and in the third of four tasks.
"""

from __future__ import annotations

import pytest

from dsdoctor.api import (
    CudaDevice,
    Environment,
    Gpus,
    ImportOutcome,
    Missing,
    Resources,
    RunNeeds,
    TorchBuild,
    TorchLive,
)
from dsdoctor.testing import Judged, judge, missing
from dsdoctor_checks.cluster import slurm_cpus_few, slurm_gpus_not_visible
from tests.checks import machines

ONE = machines.gpus("A100")
FOUR = machines.gpus("A100", "A100", "A100", "A100")
#: Every task of `srun -n4 -N1` with four GPUs.
_STEP = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_STEP_TASKS_PER_NODE": "4",
    "SLURM_GPUS_ON_NODE": "4",
    "SLURM_NODEID": "0",
    "SLURM_PROCID": "2",
    "SLURM_LOCALID": "2",
}
#: The batch script of a job with four GPUs.
_BATCH = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0"}


def task(without: str = "", **variables: str) -> Environment:
    return Environment(
        variables={key: value for key, value in {**_STEP, **variables}.items() if key != without}
    )


def batch(**variables: str) -> Environment:
    return Environment(variables={**_BATCH, **variables})


def judged(
    env: Environment,
    gpus: Gpus | Missing,
    run: RunNeeds | None = None,
    live: TorchLive | None = None,
) -> Judged:
    return judge(
        slurm_gpus_not_visible.allocation_is_visible,
        environment=env,
        gpus=gpus,
        run_needs=run or RunNeeds(),
        nvml=missing(),
        torch_live=live or missing(),
    )


@pytest.mark.parametrize(
    ("env", "gpus", "expected"),
    [
        pytest.param(
            task(SLURM_STEP_GPUS="2", CUDA_VISIBLE_DEVICES="2"),
            FOUR,
            "ok",
            id="--gpus-per-task=1, every GPU open to the job",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2", CUDA_VISIBLE_DEVICES="0"),
            ONE,
            "ok",
            id="--gpus-per-task=1, the device cgroup shows the task one GPU",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2"),
            ONE,
            "ok",
            id="--gpus-per-task=1, the container passes no CUDA_VISIBLE_DEVICES",
        ),
        pytest.param(
            task(
                "SLURM_STEP_ID",
                SLURM_STEP_GPUS="0",
                CUDA_VISIBLE_DEVICES="0",
                SLURM_GPUS_PER_TASK="1",
            ),
            ONE,
            "ok",
            id="a snapshot without the step, whose task has as many GPUs as were asked for",
        ),
        pytest.param(
            task(SLURM_GPUS_PER_TASK="1", CUDA_VISIBLE_DEVICES="2"),
            FOUR,
            "ok",
            id="a snapshot without the list of GPUs",
        ),
        pytest.param(
            task("SLURM_STEP_ID", SLURM_GPUS_PER_TASK="1", CUDA_VISIBLE_DEVICES="2"),
            FOUR,
            "ok",
            id="a snapshot of the third task, without the step or the list",
        ),
        pytest.param(
            task(
                SLURM_STEP_GPUS="2,3",
                CUDA_VISIBLE_DEVICES="2,3",
                SLURMD_TRES_BIND="gpu:mask_gpu:0x3,0xc",
            ),
            FOUR,
            "ok",
            id="--gpu-bind=mask_gpu",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="0,1,2,3", CUDA_VISIBLE_DEVICES="0,1,2,3"),
            FOUR,
            "ok",
            id="--gres=gpu:4, each task sees all",
        ),
        pytest.param(
            task(SLURMD_TRES_BIND="gpu:none", SLURM_GPUS_PER_TASK="1"),
            FOUR,
            "ok",
            id="--gpus-per-task=1 --gpu-bind=none",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2", CUDA_VISIBLE_DEVICES="0,1,2,3"),
            FOUR,
            "ok",
            id="a bound task that opens the GPUs of its step to peer access",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2,3", CUDA_VISIBLE_DEVICES="0"),
            ONE,
            "fail",
            id="a task with two GPUs that sees one",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2,3", CUDA_VISIBLE_DEVICES="2", SLURMD_TRES_BIND="gpu:closest"),
            FOUR,
            "fail",
            id="a task next to two GPUs that sees one",
        ),
        pytest.param(
            task(SLURM_STEP_GPUS="2", CUDA_VISIBLE_DEVICES="2"),
            ONE,
            "fail",
            id="a container that shows GPU 0 and not the task's",
        ),
        pytest.param(
            task(SLURM_GPUS_PER_TASK="2", CUDA_VISIBLE_DEVICES="2"),
            FOUR,
            "fail",
            id="a snapshot without the list of GPUs, one of two is visible",
        ),
        pytest.param(
            task(SLURM_STEP_TASKS_PER_NODE="1", SLURM_STEP_GPUS="0-3", CUDA_VISIBLE_DEVICES="0"),
            FOUR,
            "fail",
            id="the only task of a step that sees one of its four GPUs",
        ),
        pytest.param(
            batch(
                SLURM_GPUS_ON_NODE="2",
                SLURM_JOB_GPUS="1,2",
                SLURM_STEP_GPUS="0",
                CUDA_VISIBLE_DEVICES="1",
            ),
            FOUR,
            "fail",
            id="a batch script that has inherited the list of another job's step",
        ),
        pytest.param(
            batch(SLURM_GPUS_ON_NODE="4", SLURM_GPUS_PER_TASK="1", CUDA_VISIBLE_DEVICES="0"),
            FOUR,
            "fail",
            id="a batch script with --gpus-per-task, whose variable hides three",
        ),
    ],
)
def test_tasks(env: Environment, gpus: Gpus, expected: str) -> None:
    assert judged(env, gpus).status == expected


def test_the_gpus_of_the_task_are_counted() -> None:
    found = judged(task(SLURM_STEP_GPUS="2,3", CUDA_VISIBLE_DEVICES="2"), FOUR).worst
    assert found.message == (
        "Slurm assigned 2 GPUs to this task (`SLURM_STEP_GPUS`), but it sees 1"
    )


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"CUDA_VISIBLE_DEVICES": "2"}, "ok", id="of its number"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "1"}, "ok", id="counted from the last"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "3"}, "skip", id="of another order"),
        pytest.param({"CUDA_VISIBLE_DEVICES": "0"}, "skip", id="perhaps the same for all"),
        pytest.param(
            {"CUDA_VISIBLE_DEVICES": "2,3", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_LOCALID": "1"},
            "ok",
            id="two GPUs for each of two tasks",
        ),
        pytest.param(
            {"CUDA_VISIBLE_DEVICES": "2", "SLURM_STEP_TASKS_PER_NODE": "8", "SLURM_LOCALID": "6"},
            "ok",
            id="one GPU for two tasks",
        ),
        pytest.param(
            {"CUDA_VISIBLE_DEVICES": "2", "SLURM_STEP_TASKS_PER_NODE": "1"},
            "fail",
            id="the only task on its node",
        ),
        pytest.param(
            {"CUDA_VISIBLE_DEVICES": "2", "SLURM_STEP_TASKS_PER_NODE": "2", "SLURM_LOCALID": "1"},
            "fail",
            id="one GPU where each of two tasks has two",
        ),
    ],
)
def test_a_wrapper_selects_the_gpu_of_each_task(variables: dict[str, str], expected: str) -> None:
    """`export CUDA_VISIBLE_DEVICES=$SLURM_LOCALID` in a script that srun starts."""
    env = task(SLURM_STEP_GPUS="0,1,2,3", **variables)
    assert judged(env, FOUR).status == expected


def test_the_same_choice_in_a_batch_script() -> None:
    """There, nobody else uses the other GPUs."""
    env = batch(SLURM_GPUS_ON_NODE="4", SLURM_TASKS_PER_NODE="4", CUDA_VISIBLE_DEVICES="0")
    assert judged(env, FOUR).status == "fail"


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        pytest.param(RunNeeds(), "skip", id="nothing needs one"),
        pytest.param(RunNeeds(expect_gpus=4), "fail", id="the run needs some"),
    ],
)
def test_a_step_without_gpus(run: RunNeeds, expected: str) -> None:
    """`srun --gres=none` in a batch job: SLURM_JOB_GPUS is that of the job."""
    env = task("SLURM_GPUS_ON_NODE", SLURM_JOB_GPUS="0,1,2,3")
    found = judged(env, FOUR, run)
    assert found.status == expected
    assert "Slurm assigned no GPU to this step" in found.worst.message


def test_a_step_of_a_slurm_that_lists_no_gpus_of_steps() -> None:
    env = task("SLURM_GPUS_ON_NODE", SLURM_JOB_GPUS="0,1,2,3", CUDA_VISIBLE_DEVICES="0,1,2,3")
    assert judged(env, FOUR).status == "ok"


@pytest.mark.parametrize(
    ("variables", "expected"),
    [
        pytest.param({"SLURM_GPUS_PER_TASK": "1", "SLURM_NTASKS": "4"}, "skip", id="salloc"),
        pytest.param({"SLURM_PROCID": "0"}, "fail", id="a batch script"),
        pytest.param({"SLURM_SCRIPT_CONTEXT": "prolog_slurmd"}, "fail", id="a prolog"),
    ],
)
def test_the_shell_of_salloc(variables: dict[str, str], expected: str) -> None:
    """It got no GPU whatever the job got, and may be on another node."""
    env = Environment(variables={"SLURM_JOB_ID": "7", **variables})
    found = judged(env, missing(), RunNeeds(expect_gpus=4))
    assert found.status == expected
    assert ("srun dsdoctor check" in found.worst.message) == (expected == "skip")


def _amd(count: int) -> TorchLive:
    devices = tuple(CudaDevice(index=i, name="MI250X", major=9, minor=0) for i in range(count))
    return TorchLive(imported=ImportOutcome(ok=True), cuda_ok=True, devices=devices)


@pytest.mark.parametrize(
    ("env", "live", "expected"),
    [
        pytest.param(
            task(ROCR_VISIBLE_DEVICES="0,1,2,3", SLURM_STEP_GPUS="0,1,2,3"),
            _amd(4),
            "ok",
            id="four of four",
        ),
        pytest.param(
            task(ROCR_VISIBLE_DEVICES="2", SLURM_STEP_GPUS="2"), _amd(1), "ok", id="a bound task"
        ),
        pytest.param(
            task(ROCR_VISIBLE_DEVICES="2", SLURM_STEP_GPUS="0,1,2,3"),
            _amd(1),
            "ok",
            id="a wrapper that selects by SLURM_LOCALID",
        ),
        pytest.param(
            batch(SLURM_GPUS_ON_NODE="4", ROCR_VISIBLE_DEVICES="0,1,2,3"),
            _amd(8),
            "ok",
            id="cards in partitions, which are devices of their own",
        ),
        pytest.param(
            batch(SLURM_GPUS_ON_NODE="4", ROCR_VISIBLE_DEVICES="0"),
            _amd(1),
            "fail",
            id="a variable hides three of four",
        ),
        pytest.param(
            batch(SLURM_GPUS_ON_NODE="4"), None, "skip", id="torch was not asked for its devices"
        ),
        pytest.param(batch(), _amd(4), "skip", id="the job has no GPUs that Slurm counts"),
    ],
)
def test_amd(env: Environment, live: TorchLive | None, expected: str) -> None:
    """NVML has no AMD GPUs; torch counts those that ROCR_VISIBLE_DEVICES leaves."""
    found = judge(
        slurm_gpus_not_visible.allocation_is_visible,
        environment=env,
        gpus=machines.ABSENT,
        run_needs=RunNeeds(),
        nvml=missing(),
        torch_build=TorchBuild(version="2.4.1+rocm6.1", hip="6.1", path="/x/torch"),
        torch_live=live or missing(),
    )
    assert found.status == expected
    if expected == "fail":
        assert "ROCR_VISIBLE_DEVICES" in (found.worst.hint or "")


@pytest.mark.parametrize(
    ("cpus_of_step", "tasks", "usable", "expected"),
    [
        pytest.param(
            "56",
            "8",
            7,
            "ok",
            id="one of eight tasks, with the seven CPUs of its own GPU",
        ),
        pytest.param(
            "8",
            "8",
            1,
            "warn",
            id="one of eight tasks, with one CPU",
        ),
        pytest.param(
            "8",
            "8",
            8,
            "warn",
            id="eight tasks that share eight CPUs",
        ),
        pytest.param(
            "56",
            "1",
            7,
            "warn",
            id="the only task of a step, with seven CPUs for eight ranks",
        ),
    ],
)
def test_cpus(cpus_of_step: str, tasks: str, usable: int, expected: str) -> None:
    """A task that is bound to its own CPUs runs one rank; one that is not shares them with all."""
    env = task(
        SLURM_GPUS_ON_NODE="8",
        SLURM_CPUS_ON_NODE=cpus_of_step,
        SLURM_STEP_TASKS_PER_NODE=tasks,
    )
    resources = Resources(
        cpus_logical=96,
        cpus_usable=usable,
        memory_total_bytes=1 << 40,
        memory_available_bytes=1 << 40,
    )
    found = judge(slurm_cpus_few.cpus_suffice, environment=env, resources=resources)
    assert found.status == expected
