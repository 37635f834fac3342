"""`--restarts`: only where another start can help, and never twice for the same cause."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor import packs
from dsdoctor.host import free_port
from tests.run.support import folder_of, python, quick, record, running

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")

#: One of two ranks; rank 0 gives up when the other does not come.
RANK = """
import datetime, os, torch, torch.distributed as dist
dist.init_process_group("gloo", timeout=datetime.timedelta(seconds=int(os.environ["PATIENCE"])))
print("steps: 1 loss: 2.0 Saving model checkpoint to out/checkpoint-1", flush=True)
dist.all_reduce(torch.ones(1))
dist.destroy_process_group()
"""
LOST = "srun: error: Node failure on n3"


@pytest.mark.train
def test_a_rank_that_came_late_is_waited_for_again(tmp_path: Path) -> None:
    env = {
        **os.environ, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()),
        "WORLD_SIZE": "2",
    }  # fmt: skip
    launch = ["env", *(f"{name}={env[name]}" for name in ("MASTER_ADDR", "MASTER_PORT"))]
    # the first start waits for one second, the next one for as long as it takes
    script = (
        f"export PATIENCE=300; test -e {tmp_path}/again || PATIENCE=1; touch {tmp_path}/again; "
        'exec "$0" "$@"'
    )
    launch += ["WORLD_SIZE=2", "RANK=0", "sh", "-c", script, *python(RANK)]
    with running(tmp_path, "--restarts", "2", "--", *launch) as child:
        assert child.stderr is not None
        line = ""
        while "starting again" not in line:
            line = child.stderr.readline()
            assert line, "it was not started again"
        assert "rendezvous-timeout: a node that joined late" in line
        assert "2 restarts left" in line
        other = {**env, "RANK": "1", "PATIENCE": "300"}
        subprocess.run(python(RANK), env=other, check=True, timeout=300, capture_output=True)
        assert child.wait(300) == 0
    found = record(tmp_path)
    assert (found["attempts"], found["status"], found["checkpoint"]) == (2, 0, "out/checkpoint-1")
    first = folder_of(tmp_path) / "attempt-1"
    assert (first / "output-000001.log.gz").is_file()
    assert (first / "flight-recorder").is_dir()
    assert (folder_of(tmp_path) / "flight-recorder").is_dir()  # the variables name it


def _attempts(tmp_path: Path, text: str, *options: str) -> int:
    command = f"echo x >> {tmp_path}/starts; echo step 1 loss: 2.0; {text}"
    quick(tmp_path, *options, "--", "sh", "-c", command)
    return len((tmp_path / "starts").read_text().split())


def test_the_same_cause_twice_ends_the_restarts(tmp_path: Path) -> None:
    assert _attempts(tmp_path, f"echo '{LOST}'; exit 1", "--restarts", "5") == 2
    assert record(tmp_path)["attempts"] == 2


def test_another_cause_is_a_reason_to_start_again(tmp_path: Path) -> None:
    other = "torch.distributed.DistStoreError: Timed out after 9 seconds waiting for clients. 1/2 clients joined."
    text = f"case $(wc -l < {tmp_path}/starts) in 1) echo '{LOST}'; exit 1;; 2) echo '{other}'; exit 1;; esac"
    assert _attempts(tmp_path, text, "--restarts", "5") == 3
    assert record(tmp_path)["status"] == 0


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (f"echo '{LOST}'; exit 1", ()),
        ("echo 'torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB'; exit 1",
         ("--restarts", "5")),
        (f"exec {sys.executable} -c 'raise KeyError(1)'", ("--restarts", "5")),
        (f"echo '{LOST}'; kill -TERM $PPID; sleep 60", ("--restarts", "5")),
    ],
    ids=["off by default", "no room", "the script's own", "ended by somebody"],
)  # fmt: skip
def test_what_another_start_cannot_help_is_not_started_again(
    tmp_path: Path, text: str, options: tuple[str, ...]
) -> None:
    assert _attempts(tmp_path, text, *options) == 1
    assert record(tmp_path)["status"] != 0


def test_only_conditions_that_can_pass_say_so() -> None:
    found = {unit.condition.name for unit in packs.load() if unit.condition.transient}
    assert {"node-failed", "job-preempted", "rendezvous-timeout"} <= found
    assert not found & {"gpu-oom", "host-oom-killed", "disk-full", "job-time-limit"}
