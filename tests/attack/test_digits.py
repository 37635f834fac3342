"""Numbers that are none, or have 5,000 digits: Python's `int` refuses both in its own words."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.judge import judge
from dsdoctor.model.facts.machine import Environment, OsInfo
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.finding import Status
from dsdoctor.model.snapshot import of
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.config import parse_config
from dsdoctor.run import requeue, restarts
from tests.support.command import clean_environment, dsdoctor

pytestmark = pytest.mark.any_user

WORDS = ("9" * 5000, "²", "٣", "-1", "", "1e999", "nan", "0x10", " 7 ", "1_000")
NAMES = (
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_PORT", "CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS",
    "MAX_JOBS", "SLURM_JOB_ID", "SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_GPUS_ON_NODE",
    "SLURM_STEP_GPUS", "SLURM_JOB_GPUS", "SLURM_CPUS_ON_NODE", "SLURM_MEM_PER_NODE",
    "SLURM_MEM_PER_CPU", "SLURM_MEM_PER_GPU", "SLURM_NTASKS_PER_NODE", "SLURM_TASKS_PER_NODE",
    "SLURM_RESTART_COUNT", "SLURM_PROCID", "NCCL_IB_HCA", "NCCL_IB_GID_INDEX", "NCCL_BUFFSIZE",
    "NCCL_NTHREADS", "NCCL_SOCKET_NTHREADS", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC",
    "TORCH_CUDA_ARCH_LIST", "PYTORCH_CUDA_ALLOC_CONF", "NCCL_IB_TIMEOUT", "DEEPSPEED_TIMEOUT",
)  # fmt: skip


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word[:6])
def test_no_check_of_a_job_crashes_on_its_variables(word: str) -> None:
    registry = packs.load(builtin_only=True)
    variables = dict.fromkeys(NAMES, word)
    command = f"srun --ntasks-per-node={word} deepspeed --num_gpus {word} --num_nodes {word} t.py"
    config = {
        "train_batch_size": word, "zero_optimization": {"stage": word, "stage3_max_reuse": word},
        "train_micro_batch_size_per_gpu": word, "gradient_accumulation_steps": word,
        "fp16": {"enabled": word, "initial_scale_power": word},
    }  # fmt: skip
    words = tuple(command.split(" "))
    facts = [
        RunNeeds(command=words, config=parse_config(json.dumps(config)).parsed),
        Environment(variables=variables), OsInfo(system="Linux", release="6.1", machine="x86_64", hostname="h"), parse_command(words),
        parse_config(json.dumps(config)),
    ]  # fmt: skip
    report = judge(of(facts), list(registry), registry)
    crashed = [f"{f.condition}: {f.message}" for f in report.findings if f.status is Status.CRASH]
    assert crashed == []


@pytest.mark.parametrize("word", [word for word in WORDS if word], ids=lambda word: word[:6])
def test_a_job_that_dies_keeps_its_status_whatever_its_variables_say(
    tmp_path: Path, word: str
) -> None:
    names = ("SLURM_JOB_ID", "SLURM_JOB_NUM_NODES", "SLURM_RESTART_COUNT", "SLURM_PROCID", "RANK")
    env = clean_environment(tmp_path, **dict.fromkeys(names, word))
    options = ("run", "--preflight", "off", "--runs-dir", str(tmp_path / "runs"), "--requeue")
    done = dsdoctor(*options, "--", sys.executable, "-c", "raise SystemExit(7)", env=env)
    assert done.status == 7, done.err
    assert "internal error" not in done.err


@pytest.mark.parametrize("word", WORDS, ids=lambda word: word[:6])
def test_the_number_of_a_job_or_a_task_is_one_or_none(
    monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    monkeypatch.setattr(requeue, "own_tool", lambda _name: "/usr/bin/scontrol")
    assert requeue.job_of({"SLURM_JOB_ID": word}) is None
    job = requeue.job_of(
        {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": word, "SLURM_RESTART_COUNT": word}
    )
    assert job is not None
    assert (job.nodes, job.restarts) == (1, 0)
    assert restarts.is_first({"SLURM_PROCID": word, "RANK": "0"})
    assert not restarts.is_first({"SLURM_PROCID": word, "RANK": "3"})
