"""Rows of the conditions of Slurm jobs: what was given against what is visible."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Environment, Gpus, Resources, RunNeeds
from dsdoctor.model.facts.gpu import MigDevice
from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.cluster import (
    slurm_cpus_few,
    slurm_gpus_not_visible,
    slurm_memory_limited,
    srun_starts_launcher_twice,
)
from tests.checks import machines

GIB = 1 << 30


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
        (Environment(), A100, RunNeeds(), "skip"),
        (job(), A100, RunNeeds(), "skip"),
        (job(SLURM_GPUS_ON_NODE="4"), A100, RunNeeds(), "ok"),
        (job(SLURM_JOB_GPUS="0-3"), A100, RunNeeds(), "ok"),
        (job(SLURM_JOB_GPUS="2,3", CUDA_VISIBLE_DEVICES="0,1"), A100, RunNeeds(), "ok"),
        (
            job(SLURM_GPUS_ON_NODE="2", CUDA_VISIBLE_DEVICES="MIG-aa,MIG-bb"),
            SLICED,
            RunNeeds(),
            "ok",
        ),
        (job(SLURM_GPUS_ON_NODE="2"), SLICED, RunNeeds(), "ok"),
        (
            job(SLURM_GPUS_ON_NODE="1", CUDA_VISIBLE_DEVICES="GPU-1a100"),
            A100,
            RunNeeds(),
            "ok",
        ),
        (job(SLURM_GPUS_ON_NODE="4", CUDA_VISIBLE_DEVICES="0"), A100, RunNeeds(), "fail"),
        (job(SLURM_GPUS_ON_NODE="8"), A100, RunNeeds(), "fail"),
        (job(SLURM_GPUS_ON_NODE="2"), machines.ABSENT, RunNeeds(), "fail"),
        (job(SLURM_GPUS_ON_NODE="2"), A100, RunNeeds(), "warn"),
        (job(), A100, RunNeeds(expect_gpus=4), "fail"),
    ],
)
def test_gpus(env: Environment, gpus: Gpus, run: RunNeeds, expected: str) -> None:
    check = slurm_gpus_not_visible.allocation_is_visible
    assert judge(check, environment=env, gpus=gpus, run_needs=run).status == expected


@pytest.mark.parametrize(
    ("env", "cpus", "expected"),
    [
        (Environment(), 1, "skip"),
        (job(SLURM_GPUS_ON_NODE="8"), 96, "ok"),
        (job(SLURM_GPUS_ON_NODE="1"), 2, "ok"),
        (job(SLURM_CPUS_ON_NODE="1"), 1, "ok"),
        (job(SLURM_GPUS_ON_NODE="8"), 8, "warn"),
        (job(SLURM_GPUS_ON_NODE="4", SLURM_CPUS_ON_NODE="32"), 1, "warn"),
    ],
)
def test_cpus(env: Environment, cpus: int, expected: str) -> None:
    facts: dict[str, Any] = {"environment": env, "resources": resources(cpus_usable=cpus)}
    assert judge(slurm_cpus_few.cpus_suffice, **facts).status == expected


@pytest.mark.parametrize(
    ("env", "limit", "expected"),
    [
        (Environment(), 2, "skip"),
        (job(), None, "ok"),
        (job(SLURM_MEM_PER_NODE="65536"), 64, "ok"),
        (job(SLURM_MEM_PER_NODE="0"), 1024, "ok"),
        (job(SLURM_MEM_PER_CPU="4096", SLURM_CPUS_ON_NODE="16"), 64, "ok"),
        (job(SLURM_MEM_PER_NODE="65536"), 32, "warn"),
        (job(), 8, "warn"),
    ],
)
def test_memory(env: Environment, limit: int | None, expected: str) -> None:
    held = resources(memory_limit_bytes=None if limit is None else limit * GIB)
    facts: dict[str, Any] = {"environment": env, "resources": held, "gpus": A100}
    assert judge(slurm_memory_limited.memory_suffices, **facts).status == expected


@pytest.mark.parametrize(
    ("line", "env", "expected"),
    [
        ("srun --ntasks-per-node=1 torchrun --nproc_per_node 8 t.py", job(), "ok"),
        ("srun --ntasks-per-node=8 python t.py", job(), "skip"),
        ("torchrun --nproc_per_node 8 t.py", job(SLURM_NTASKS_PER_NODE="8"), "skip"),
        ("srun torchrun t.py", job(), "ok"),
        ("srun --ntasks-per-node=8 torchrun --nproc_per_node 8 t.py", job(), "fail"),
        ("srun --ntasks-per-node 8 deepspeed t.py", job(), "fail"),
        ("srun torchrun t.py", job(SLURM_TASKS_PER_NODE="8(x2)"), "fail"),
    ],
)
def test_srun(line: str, env: Environment, expected: str) -> None:
    command = parse_command(line.split())
    check = srun_starts_launcher_twice.one_launcher_a_node
    assert judge(check, launch_command=command, environment=env).status == expected
