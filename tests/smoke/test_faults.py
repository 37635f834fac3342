"""Real runs, broken in one way each: the cause is named, and nothing is left behind."""

from __future__ import annotations

import os
import resource
import shutil
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from tests.smoke.conftest import Smoke, marked, wait_for

pytestmark = [pytest.mark.train, pytest.mark.timeout(1800)]


def shim(folder: Path, text: str) -> str:
    """A patient whose `deepspeed` is a script of ours around the real one; its interpreter."""
    beside = folder / "bin"
    beside.mkdir()
    for name, body in (("python", f'exec "{sys.executable}" "$@"'), ("deepspeed", text)):
        path = beside / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)
    return str(beside / "python")


REAL = f'"{sys.executable}" -m deepspeed.launcher.runner "$@"'


@pytest.mark.parametrize(
    ("fault", "condition", "words"),
    [
        ("kill@1", "rank-killed", "rank 1 was killed in steps (step 0)"),
        ("nan@0", "training-diverged", "the loss is nan after 1 steps"),
        ("corrupt@1", "wrong-results", "all_reduce gave 4 on rank 1, expected 3"),
        ("launcher@0", "launcher-killed", "while rank 0, 1 still ran"),
        ("runner@0", "launcher-killed", "signal 9"),
    ],
)
def test_fault_is_named(smoke: Smoke, fault: str, condition: str, words: str) -> None:
    ended = smoke("--cpu", "2", "--steps", "3", "--fault", fault)
    assert ended.status == 1, ended.out
    assert ended.causes == [condition]
    assert words in ended.report["causes"][0]["message"]
    assert ended.report["verdict"] == "fail"
    assert "that a job starts here" in ended.report["not_proved"]


def test_sleeping_rank_is_told_from_the_ranks_that_wait_for_it(smoke: Smoke) -> None:
    ended = smoke("--cpu", "2", "--fault", "sleep@1:collectives", limits={"collectives": 15.0})
    assert ended.status == 1
    assert ended.causes == ["nccl-timeout-watchdog"]
    assert "rank 1 did not arrive" in ended.report["causes"][0]["message"]
    one, two = ended.report["ranks"]
    assert (one["outcome"], two["outcome"]) == ("hung", "hung")
    assert any("all_reduce" in line for line in one["stack"])
    assert any("fault" in line for line in two["stack"])


def test_port_that_is_taken(smoke: Smoke) -> None:
    with socket.socket() as taken:
        taken.bind(("0.0.0.0", 0))
        taken.listen()
        ended = smoke("--cpu", "2", "--master-port", str(taken.getsockname()[1]))
    assert ended.status == 1
    assert ended.causes[0] == "port-in-use"


def test_batch_triangle_that_is_wrong(smoke: Smoke) -> None:
    config = smoke.config(train_batch_size=7, gradient_accumulation_steps=1)
    ended = smoke("--cpu", "2", "--config", config)
    assert ended.status == 1
    assert ended.causes[0] == "ds-config-batch-mismatch"
    phases = {phase["name"]: phase["status"] for phase in ended.report["phases"]}
    assert (phases["numerics"], phases["engine-init"]) == ("ok", "fail")


def test_host_memory_runs_out_under_a_limit(smoke: Smoke) -> None:
    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))

    ended = smoke("--cpu", "2", "--fault", "memory@1", preexec_fn=limit)
    assert ended.status == 1
    assert ended.causes[0] == "host-oom-killed"


def test_compiler_missing_while_an_op_is_built(smoke: Smoke) -> None:
    tools = smoke.folder / "tools"
    tools.mkdir()
    for name in ("sh", "uname", "which", "ninja", "bash"):
        found = shutil.which(name, path=smoke.env["PATH"])
        if found:
            (tools / name).symlink_to(found)
    smoke.env |= {
        "PATH": str(tools),
        "TORCH_EXTENSIONS_DIR": str(smoke.folder / "fresh"),
    }
    smoke.env.pop("CXX", None)
    ended = smoke("--cpu", "2")
    assert ended.status == 1
    assert ended.causes[0] == "jit-build-compiler-missing"
    phases = {phase["name"]: phase["status"] for phase in ended.report["phases"]}
    assert phases["build-ops"] == "fail"


def test_patient_without_deepspeed(smoke: Smoke) -> None:
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(smoke.folder / "bare")], check=True
    )
    ended = smoke("--cpu", "2", patient=str(smoke.folder / "bare"))
    assert ended.status == 1
    assert ended.causes[0] == "deepspeed-missing"


def test_launcher_that_exits_0_although_a_rank_died(smoke: Smoke) -> None:
    patient = shim(smoke.folder, f"{REAL}\nexit 0")
    ended = smoke("--cpu", "2", "--steps", "3", "--fault", "kill@1", patient=patient)
    assert ended.status == 1
    assert ended.causes == ["rank-killed"]
    assert "the launcher says exit status 0" in ended.report["causes"][0]["message"]


def test_launcher_that_starts_nothing_and_exits_0(smoke: Smoke) -> None:
    ended = smoke("--cpu", "2", patient=shim(smoke.folder, "exit 0"))
    assert ended.status == 1
    assert [rank["outcome"] for rank in ended.report["ranks"]] == ["never-started"] * 2


def test_bisection_finds_the_variable_that_the_launcher_needs(smoke: Smoke) -> None:
    patient = shim(
        smoke.folder,
        f"export GLOO_SOCKET_IFNAME=${{GLOO_SOCKET_IFNAME:-absent0}}\nexec {REAL}",
    )
    ended = smoke("--cpu", "2", "--steps", "3", "--bisect", patient=patient)
    assert ended.status == 1
    assert ended.report["verdict"] == "fail"
    assert ended.report["works_with"] == {"GLOO_SOCKET_IFNAME": "lo"}
    (row,) = ended.report["bisect"]
    assert (row["knob"], row["verdict"]) == ("GLOO_SOCKET_IFNAME", "pass")
    assert "GB/s" in row["cost"]


@pytest.mark.parametrize(
    ("number", "status"),
    # SIGHUP goes the way of SIGTERM (tests/attack/test_smoke_sweep.py)
    [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)],
)
def test_ended_from_outside_it_leaves_nothing(smoke: Smoke, number: int, status: int) -> None:
    child = smoke.start(
        "--cpu", "2", "--python", sys.executable, "--fault", "sleep@0", "--format", "json"
    )

    def trains() -> bool:
        return any(
            '"phase": "steps"' in path.read_text()
            for path in smoke.temporary.glob("dsdoctor-smoke-*/rank-0.jsonl")
        )

    wait_for(trains)
    os.kill(child.pid, number)
    out, _ = child.communicate(timeout=500)
    assert child.returncode == status
    if number == signal.SIGINT:
        assert '"partial": true' in out
        assert '"verdict": "unknown"' in out
    if number == signal.SIGKILL:
        # nobody is left to end the ranks: they end by themselves, and the next run sweeps
        wait_for(lambda: not marked(smoke.token))
        again = smoke("--cpu", "2", patient=shim(smoke.folder, "exit 0"))
        assert again.status == 1


def test_guide_b8_a_slow_rank_is_named(smoke: Smoke) -> None:
    ended = smoke("--cpu", "2", "--steps", "4", "--fault", "slow@1")
    assert ended.status == 0
    assert ended.report["figures"]["slowest_rank"] == 1
    assert ended.report["figures"]["slowest_ratio"] > 3
    assert any("rank 1 is the slowest" in line for line in ended.report["warnings"])
