"""Deaths that need root: a real out-of-memory kill in a control group, a full file system."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.deaths import die, memory_group, small_disk, wrong
from tests.run.support import RUN, environment, running, wait_for

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux"),
]


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    with small_disk(tmp_path / "disk") as folder:
        yield folder


@pytest.mark.train
def test_a_real_kill_for_lack_of_memory_is_named(tmp_path: Path, job: str, port: str) -> None:
    ended = die("memory", "torchrun", tmp_path, port, job)
    assert wrong("memory", ended) == [], ended.err
    assert ended.status == 1
    assert "memory of the job's control group is" in ended.err


FILLS = "kept = []\nwhile True: kept.append(bytearray(1 << 20))"


def test_memory_that_ran_out_in_another_control_group_is_not_the_cause(tmp_path: Path) -> None:
    """As on a shared node, whose kernel has one log."""
    with memory_group(96 << 20) as group, running(tmp_path, "--", "sleep", "600") as child:
        samples = wait_for(lambda: list((tmp_path / "runs").glob("*/samples.jsonl")))[0]
        enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
        other = ["sh", "-c", enter, "sh", sys.executable, "-c", FILLS]
        assert subprocess.run(other, check=False, timeout=200).returncode == -signal.SIGKILL
        wait_for(lambda: "Killed process" in samples.read_text())
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate(timeout=200)
    assert "cause: SIGTERM from outside" in err
    assert "host-oom-killed" not in err


@pytest.mark.train
def test_a_disk_that_a_checkpoint_fills_is_named(tmp_path: Path, job: str, port: str) -> None:
    ended = die("disk", "deepspeed", tmp_path, port, job)
    assert wrong("disk", ended) == [], ended.err
    assert f"disk {tmp_path / 'disk'}" in {notice["key"] for notice in ended.record["notices"]}


def test_a_full_disk_below_our_own_records_does_not_stop_the_job(
    tmp_path: Path, small_disk: Path
) -> None:
    text = "import os\nfor _ in range(40): os.write(1, os.urandom(1 << 20))\nraise SystemExit(0)"
    done = subprocess.run(
        [*RUN, "--preflight", "off", "--runs-dir", str(small_disk / "runs"),
         "--", sys.executable, "-c", text],
        env=environment(tmp_path), capture_output=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(done.stdout) == 40 << 20
    assert b"Traceback" not in done.stderr


def _full(folder: Path, room: int) -> None:
    """Fills a disk but for so many bytes."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    os.truncate(filler, filler.stat().st_size - room)


@pytest.mark.parametrize("room", [0, 8192])
def test_a_disk_without_room_for_a_record_is_one_line(
    tmp_path: Path, small_disk: Path, room: int
) -> None:
    base = small_disk / "runs"
    base.mkdir()
    _full(small_disk, room)
    command = [*RUN, "--preflight", "off", "--runs-dir", str(base), "--", "echo", "started"]
    done = subprocess.run(
        command, env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=500
    )
    assert "Traceback" not in done.stderr
    if done.returncode:
        (line,) = done.stderr.splitlines()
        assert (done.returncode, done.stdout) == (2, "")
        assert line.startswith(
            f"dsdoctor: `{base}` cannot store the records of runs (No space left"
        )
        assert list(base.iterdir()) == []
    else:
        assert (room, done.stdout) == (8192, "started\n")


def test_a_death_is_explained_though_its_record_has_no_room(
    tmp_path: Path, small_disk: Path
) -> None:
    text = (
        "import os, sys\n"
        f"file = open({str(small_disk / 'filler')!r}, 'wb', buffering=0)\n"
        "try:\n    while True: file.write(bytes(4096))\nexcept OSError: pass\n"
        "sys.exit(3)"
    )
    done = subprocess.run(
        [*RUN, "--preflight", "off", "--runs-dir", str(small_disk / "runs"),
         "--", sys.executable, "-c", text],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    said = [line for line in done.stderr.splitlines() if "GiB left" not in line]
    assert done.returncode == 3
    assert any("the job exited with status 3" in line for line in said), said
    assert any("the record of this run is incomplete: No space left" in line for line in said)
    assert said[-1].startswith("dsdoctor: saved in ")
