"""Rows of the conditions of Slurm jobs: what was given against what is visible."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import (
    Environment,
    Gpus,
    ImportOutcome,
    Missing,
    Nvml,
    Resources,
    RunNeeds,
    TorchLive,
)
from dsdoctor.model.facts.gpu import MigDevice
from dsdoctor.probes.command_line import batch_options, parse_command
from dsdoctor.testing import judge, missing
from dsdoctor_checks.cluster import (
    slurm_cpus_few,
    slurm_gpus_not_visible,
    slurm_memory_limited,
    srun_starts_launcher_twice,
)
from tests.checks import machines

GIB = 1 << 30
NO_CUDA = TorchLive(imported=ImportOutcome(ok=True), cuda_ok=False)


def job(**variables: str) -> Environment:
    return Environment(variables={"SLURM_JOB_ID": "7", **variables})


def resources(**changes: Any) -> Resources:
    usual: dict[str, Any] = {
        "cpus_logical": 96,
        "cpus_usable": 96,
        "memory_total_bytes": 1024 * GIB,
        "memory_available_bytes": 1000 * GIB,
    }
    return Resources(**{**usual, **changes})


A100 = machines.gpus("A100", "A100", "A100", "A100")
SLICES = (MigDevice(index=0, uuid="MIG-aa"), MigDevice(index=1, uuid="MIG-bb"))
SLICED = Gpus(
    gpus=(msgspec.structs.replace(A100.gpus[0], mig_mode=True, mig_devices=SLICES),), count=1
)


@pytest.mark.parametrize(
    ("env", "gpus", "run", "expected"),
    [
        pytest.param(Environment(), A100, RunNeeds(), "skip", id="a machine outside a Slurm job"),
        pytest.param(job(), A100, RunNeeds(), "skip", id="a job that was given no GPUs"),
        pytest.param(
            job(), Gpus(count=0), RunNeeds(), "skip", id="a job without GPUs, on a node without any"
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="4"),
            A100,
            RunNeeds(),
            "ok",
            id="a job with four GPUs that sees four",
        ),
        pytest.param(
            job(SLURM_JOB_GPUS="0-3"),
            A100,
            RunNeeds(),
            "ok",
            id="a job whose GPUs are written as a range",
        ),
        pytest.param(
            job(SLURM_JOB_GPUS="2,3", CUDA_VISIBLE_DEVICES="0,1"),
            A100,
            RunNeeds(),
            "ok",
            id="a job that counts its own two GPUs from 0",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="2", CUDA_VISIBLE_DEVICES="MIG-aa,MIG-bb"),
            SLICED,
            RunNeeds(),
            "ok",
            id="a job with two MIG slices, named by UUID",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="2"),
            SLICED,
            RunNeeds(),
            "ok",
            id="a job with two MIG slices of one GPU",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="1", CUDA_VISIBLE_DEVICES="GPU-1a100"),
            A100,
            RunNeeds(),
            "ok",
            id="a job with one GPU, named by UUID",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="4", CUDA_VISIBLE_DEVICES="0"),
            A100,
            RunNeeds(),
            "fail",
            id="a job with four GPUs of which a variable shows one",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="2,3",
                SLURMD_TRES_BIND="gres/gpu:closest",
            ),
            A100,
            RunNeeds(),
            "ok",
            id="a task that srun binds to the two GPUs next to its CPUs",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="0",
                SLURMD_TRES_BIND="gpu:verbose,single:1",
            ),
            A100,
            RunNeeds(),
            "ok",
            id="a task of Slurm 22.05 with a GPU of its own, in a verbose step",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="0",
                SLURMD_TRES_BIND="gres/gpu:per_task:2",
            ),
            A100,
            RunNeeds(),
            "fail",
            id="a task that should have two GPUs and sees one",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="0",
                SLURMD_TRES_BIND="gres/gpu:none",
            ),
            A100,
            RunNeeds(),
            "fail",
            id="a task without binding sees one of its four GPUs",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="0",
                SLURMD_TRES_BIND="gres/nic:closest",
            ),
            A100,
            RunNeeds(),
            "fail",
            id="a task that is bound to an adapter, not to a GPU",
        ),
        pytest.param(
            job(
                SLURM_GPUS_ON_NODE="4",
                CUDA_VISIBLE_DEVICES="7",
                SLURMD_TRES_BIND="gres/gpu:map:3",
            ),
            A100,
            RunNeeds(),
            "fail",
            id="a bound task that sees no GPU",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="8"),
            A100,
            RunNeeds(),
            "fail",
            id="a job with eight GPUs that sees four",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="2"),
            machines.ABSENT,
            RunNeeds(),
            "fail",
            id="a job with two GPUs that sees none",
        ),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="2"),
            A100,
            RunNeeds(),
            "warn",
            id="a job with two GPUs that sees four",
        ),
        pytest.param(
            job(SLURM_PROCID="0"),
            A100,
            RunNeeds(expect_gpus=4),
            "fail",
            id="a job that was given no GPUs, but expects four",
        ),
    ],
)
def test_gpus(env: Environment, gpus: Gpus, run: RunNeeds, expected: str) -> None:
    check = slurm_gpus_not_visible.allocation_is_visible
    judged = judge(
        check, environment=env, gpus=gpus, run_needs=run, nvml=missing(), torch_live=missing()
    )
    assert judged.status == expected


@pytest.mark.parametrize(
    ("live", "nvml", "expected"),
    [
        pytest.param(NO_CUDA, machines.nvml(), "fail", id="torch finds no GPU"),
        pytest.param(missing(), machines.nvml(), "warn", id="torch was not asked"),
        pytest.param(NO_CUDA, missing(), "skip", id="a node without a driver"),
    ],
)
def test_a_node_whose_gpus_were_not_asked_for(
    live: TorchLive | Missing, nvml: Nvml | Missing, expected: str
) -> None:
    """The driver works, and the device cgroup hides every GPU from the job."""
    check = slurm_gpus_not_visible.allocation_is_visible
    env = job(SLURM_PROCID="0")
    judged = judge(check, environment=env, gpus=Gpus(count=0), nvml=nvml, torch_live=live)
    assert judged.status == expected
    assert "Slurm assigned no GPU to this job" in judged.worst.message


@pytest.mark.parametrize(
    ("env", "cpus", "expected"),
    [
        pytest.param(Environment(), 1, "skip", id="a machine outside a Slurm job"),
        pytest.param(job(SLURM_GPUS_ON_NODE="8"), 96, "ok", id="96 CPUs for eight GPUs"),
        pytest.param(job(SLURM_GPUS_ON_NODE="1"), 2, "ok", id="two CPUs for one GPU"),
        pytest.param(
            job(SLURM_CPUS_ON_NODE="1"), 1, "ok", id="one CPU and no GPU, as the job asked for"
        ),
        pytest.param(job(SLURM_GPUS_ON_NODE="8"), 8, "warn", id="eight CPUs for eight GPUs"),
        pytest.param(
            job(SLURM_GPUS_ON_NODE="4", SLURM_CPUS_ON_NODE="32"),
            1,
            "warn",
            id="one usable CPU of 32 for four GPUs",
        ),
    ],
)
def test_cpus(env: Environment, cpus: int, expected: str) -> None:
    facts: dict[str, Any] = {"environment": env, "resources": resources(cpus_usable=cpus)}
    assert judge(slurm_cpus_few.cpus_suffice, **facts).status == expected


@pytest.mark.parametrize(
    ("env", "limit", "expected"),
    [
        pytest.param(Environment(), 2, "skip", id="a machine outside a Slurm job"),
        pytest.param(job(), None, "ok", id="a job without a memory limit"),
        pytest.param(
            job(SLURM_MEM_PER_NODE="65536"),
            64,
            "ok",
            id="the cgroup has the 64 GiB that the job asked for",
        ),
        pytest.param(
            job(SLURM_MEM_PER_NODE="0"), 1024, "ok", id="the job asked for all memory of the node"
        ),
        pytest.param(
            job(SLURM_MEM_PER_CPU="4096", SLURM_CPUS_ON_NODE="16"),
            64,
            "ok",
            id="16 CPUs with 4 GiB each make 64 GiB",
        ),
        pytest.param(
            job(SLURM_MEM_PER_NODE="65536"),
            32,
            "warn",
            id="the cgroup has half of the memory that the job asked for",
        ),
        pytest.param(job(), 8, "warn", id="8 GiB are little for four A100"),
    ],
)
def test_memory(env: Environment, limit: int | None, expected: str) -> None:
    held = resources(memory_limit_bytes=None if limit is None else limit * GIB)
    facts: dict[str, Any] = {"environment": env, "resources": held, "gpus": A100}
    assert judge(slurm_memory_limited.memory_suffices, **facts).status == expected


@pytest.mark.parametrize(
    ("line", "env", "expected"),
    [
        pytest.param(
            "srun --ntasks-per-node=1 torchrun --nproc_per_node 8 t.py",
            job(),
            "ok",
            id="one torchrun on each node",
        ),
        pytest.param(
            "srun --ntasks-per-node=8 python t.py", job(), "skip", id="srun starts the ranks itself"
        ),
        pytest.param(
            "torchrun --nproc_per_node 8 t.py",
            job(SLURM_NTASKS_PER_NODE="8"),
            "skip",
            id="torchrun runs without srun",
        ),
        pytest.param("srun torchrun t.py", job(), "ok", id="srun starts one torchrun by default"),
        pytest.param(
            "srun --ntasks-per-node=8 torchrun --nproc_per_node 8 t.py",
            job(),
            "fail",
            id="srun starts eight torchruns on each node",
        ),
        pytest.param(
            "srun --ntasks-per-node 8 deepspeed t.py",
            job(),
            "fail",
            id="srun starts eight deepspeed launchers on each node",
        ),
        pytest.param(
            "srun torchrun t.py",
            job(SLURM_TASKS_PER_NODE="8(x2)"),
            "fail",
            id="the job's own number of tasks starts eight torchruns on each node",
        ),
    ],
)
def test_srun(line: str, env: Environment, expected: str) -> None:
    command = parse_command(line.split())
    check = srun_starts_launcher_twice.one_launcher_a_node
    assert judge(check, launch_command=command, environment=env).status == expected


@pytest.mark.parametrize(
    ("script", "line", "expected"),
    [
        pytest.param(
            "#SBATCH --ntasks-per-node=8\n", "srun torchrun t.py", "fail", id="eight tasks a node"
        ),
        pytest.param(
            "#SBATCH --ntasks-per-node=1\n", "srun torchrun t.py", "ok", id="one task a node"
        ),
        pytest.param(
            "#SBATCH -N 2\n#SBATCH -n 16\n", "srun torchrun t.py", "fail", id="tasks of all nodes"
        ),
        pytest.param("#SBATCH -N 2\n", "srun torchrun t.py", "ok", id="no number of tasks"),
        pytest.param(
            "#SBATCH --ntasks-per-node=8\n",
            "srun --ntasks-per-node=1 torchrun t.py",
            "ok",
            id="the step asks for one task a node",
        ),
        pytest.param(
            "#SBATCH -N 2\n#SBATCH --ntasks-per-node=8\n",
            "srun -n 2 torchrun t.py",
            "ok",
            id="the step asks for as many tasks as nodes",
        ),
        pytest.param(
            "#SBATCH -N 2\n", "srun --ntasks=4 torchrun t.py", "fail", id="two tasks a node"
        ),
        pytest.param("", "srun -n 4 torchrun t.py", "ok", id="nobody knows on how many nodes"),
    ],
)
def test_srun_in_a_batch_script(script: str, line: str, expected: str) -> None:
    """What the shell that submits has in its environment does not count."""
    judged = judge(
        srun_starts_launcher_twice.one_launcher_a_node,
        launch_command=parse_command(line.split()),
        run_needs=RunNeeds(command=tuple(line.split()), batch=batch_options(script)),
        environment=job(SLURM_NTASKS_PER_NODE="4") if script else Environment(),
    )
    assert judged.status == expected
