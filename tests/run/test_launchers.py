"""Real jobs of two ranks under each launcher, with `dsdoctor run` around them."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from dsdoctor.host import free_port
from tests.run.support import folder_of, quick, record, spoken

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
]

#: Takes the variables that each of the launchers sets.
TRAIN = """
import os, sys, time, torch, torch.distributed as dist
dist.init_process_group("gloo")
rank, how = dist.get_rank(), sys.argv[-1]
for step in range(1, 7):
    loss = torch.tensor([2.0 / step])
    if how == "nan" and step > 2: loss = loss * float("nan")
    dist.all_reduce(loss)
    if rank == 0:
        print(f"steps: {step} loss: {loss.item() / 2:.4f} iter time (s): 0.200 samples/sec: 40.0", flush=True)
    if how == "key" and step == 4 and rank == 1: {}["missing"]
    time.sleep(0.2)
dist.barrier()
dist.destroy_process_group()
"""
#: Two ranks without a launcher: the script starts the other one.
BY_HAND = """
import os, subprocess, sys
kids = [subprocess.Popen([sys.executable, *sys.argv[2:]], env={**os.environ, "RANK": str(rank),
        "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": sys.argv[1]}) for rank in (0, 1)]
sys.exit(int(any([kid.wait() for kid in kids])))  # Gloo may abort the rank that is left alone
"""


def _command(launcher: str, folder: Path) -> list[str]:
    port = str(free_port())
    if launcher == "python":
        path = folder / "start.py"
        path.write_text(BY_HAND)
        return [sys.executable, str(path), port]
    if launcher == "deepspeed":
        return ["deepspeed", "--num_gpus", "2", "--master_port", port]
    if launcher == "accelerate":  # `--cpu` starts one process; the script uses no GPU
        return [
            "accelerate", "launch", "--multi_gpu", "--num_processes", "2", "--num_machines", "1",
            "--main_process_port", port,
        ]  # fmt: skip
    return ["torchrun", "--nproc-per-node", "2", "--master-port", port]


LAUNCHERS = ("deepspeed", "accelerate", "python", "torchrun")


@pytest.fixture(name="script")
def _script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return str(path)


def _sampled(folder: Path) -> set[int]:
    """Ranks that were seen while the job ran."""
    rows = (folder_of(folder) / "samples.jsonl").read_text().splitlines()
    return {rank["rank"] for row in rows for rank in json.loads(row)["ranks"]}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_a_run_that_works_is_one_line_with_its_figures(
    tmp_path: Path, script: str, launcher: str
) -> None:
    done = quick(tmp_path, "--", *_command(launcher, tmp_path), script, "none")
    assert done.returncode == 0, done.stderr
    (last,) = spoken(done.stderr)
    assert "last step 6; 0.2 s per step" in last
    assert "loss 0.3333" in last
    figures = record(tmp_path)["figures"]
    assert (figures["steps"], figures["samples_per_second"]) == (6, 40.0)
    assert _sampled(tmp_path) == {0, 1}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_the_rank_whose_exception_ended_the_job_is_named(
    tmp_path: Path, script: str, launcher: str
) -> None:
    done = quick(tmp_path, "--", *_command(launcher, tmp_path), script, "key")
    # `deepspeed` passes on the status of the rank that it finds dead first, and Gloo may abort the
    # rank that is left alone (128 + 6 as a shell counts, -6 modulo 256 as `deepspeed` does)
    assert done.returncode in ({1, 250} if launcher == "deepspeed" else {1})
    found = record(tmp_path)["diagnosis"]
    assert found["outcome"] == "user-code", found["summary"]
    assert found["first_error"]["type"] == "KeyError"
    said = spoken(done.stderr)
    assert len(said) <= 10
    assert any("KeyError: 'missing'" in line for line in said)
    assert any(f"{script}:" in line for line in said)
    assert _sampled(tmp_path) == {0, 1}
    if launcher in ("torchrun", "accelerate"):  # the others do not say which rank writes
        assert found["first_error"]["rank"] == 1


def test_a_loss_that_is_not_a_number_is_said_once_while_the_job_runs(
    tmp_path: Path, script: str
) -> None:
    done = quick(tmp_path, "--", *_command("torchrun", tmp_path), script, "nan")
    assert done.returncode == 0, done.stderr
    said = spoken(done.stderr)
    assert said[0] == "dsdoctor: the loss is NaN"
    assert len(said) == 2
    notices = record(tmp_path)["notices"]
    assert [notice["key"] for notice in notices].count("loss-nan") == 1
    assert f"{len(notices)} notice" in said[1]
