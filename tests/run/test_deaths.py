"""How a real job of DeepSpeed's engines dies, and what `dsdoctor run` says of it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from dsdoctor.run.flight import PIPES
from tests.run.support import (
    RUN,
    ended_first,
    environment,
    folder_of,
    launch,
    quick,
    record,
    running,
    sampled_ranks,
    spoken,
)

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux"),
    pytest.mark.train,
    pytest.mark.timeout(1200),  # DeepSpeed builds one op, unless tests/run.sh has
]


def test_a_rank_that_is_killed_is_named_with_the_order_of_death(
    tmp_path: Path, job: str, port: str
) -> None:
    done = quick(tmp_path, "--", *launch("deepspeed", tmp_path, port), job, "kill")
    assert done.returncode != 0
    found = record(tmp_path)
    assert ended_first(found, 1)
    assert found["diagnosis"]["causes"][0]["condition"] == "rank-killed"
    assert any("cause: rank-killed: " in line for line in spoken(done.stderr))


@pytest.mark.skipif(sys.version_info >= (3, 15), reason="py-spy has no wheel there")
def test_a_hang_names_the_rank_that_is_waited_for_and_can_be_stopped(
    tmp_path: Path, job: str, port: str
) -> None:
    words = ("--hang-after", "4s", "--on-hang", "stop", "--")
    done = quick(tmp_path, *words, *launch("torchrun", tmp_path, port), job, "hang")
    assert done.returncode != 0
    hang = record(tmp_path)["hang"]
    assert hang.startswith("no output and no work for")
    assert re.search(r"rank 1 is in load_next_batch \(.*train.py:\d+\)|of 2 ranks wait in", hang)
    assert re.search(r"rank 1 never started collective \d+ of group ", hang)
    assert "while rank 0 waits in it" in hang
    said = spoken(done.stderr)
    assert any(line.startswith("dsdoctor: cause: the job hung: no output") for line in said)
    assert not any("SignalException" in line for line in said)  # that was dsdoctor's own SIGTERM
    assert list(Path(record(tmp_path)["env_set"][PIPES]).parent.glob("dsdoctor-*.pipe")) == []
    stacks = {path.name: path.read_text() for path in (folder_of(tmp_path) / "stacks").iterdir()}
    assert sorted(stacks) == ["rank-0.txt", "rank-1.txt"]
    assert "load_next_batch" in stacks["rank-1.txt"]
    assert "backward" in stacks["rank-0.txt"] or "step" in stacks["rank-0.txt"]


def test_ctrl_c_reaches_every_rank_and_is_the_cause(tmp_path: Path, job: str, port: str) -> None:
    outer, inner = pty.openpty()
    words = ("--preflight", "off", "--every", "0.2s", "--", *launch("accelerate", tmp_path, port))
    with subprocess.Popen(
        [*RUN, *words, job, "wait"],
        stdin=inner, stdout=inner, stderr=inner, env=environment(tmp_path),
        preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        start_new_session=True,
    ) as child:  # fmt: skip
        os.close(inner)
        seen = b""
        while not (b"rank 0 did step 1" in seen and b"rank 1 did step 1" in seen):
            seen += os.read(outer, 4096)
        os.write(outer, b"\x03")
        while b"kept in" not in seen:
            seen += os.read(outer, 65536)
        assert child.wait(200) != 0
    os.close(outer)
    found = record(tmp_path)
    assert found["diagnosis"]["causes"][0]["condition"] == "interrupted-by-user"
    assert b"dsdoctor: cause: interrupted-by-user: " in seen
    assert {end["rank"] for end in found["rank_ends"]} == {0, 1}


def test_ranks_use_the_grace_after_a_term_to_save(tmp_path: Path, job: str, port: str) -> None:
    saved = tmp_path / "out"
    words = (*launch("python", tmp_path, port), job, "wait", "--output_dir", str(saved))
    with running(tmp_path, "--", *words) as child:
        assert child.stdout is not None
        line = ""
        while " did step 1" not in line:
            line = child.stdout.readline()
            assert line, "the job has ended"
        os.kill(child.pid, signal.SIGTERM)
        out, err = child.communicate(timeout=500)
    assert child.returncode == 0, err
    assert {f"rank {rank} has saved" for rank in (0, 1)} <= set(out.splitlines())
    assert [path.name for path in saved.glob("global_step*/mp_rank_*")]
    found = record(tmp_path)
    assert [sent["name"] for sent in found["signals"]] == ["SIGTERM"]
    assert Path(found["checkpoint"]).parent == saved
    assert sampled_ranks(tmp_path) == {0, 1}
