"""Deaths that need root: a real out-of-memory kill in a control group, a full file system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.support import RUN, ended_first, environment, launch, quick, record

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux"),
]
#: Two ranks and their launcher take 1.2 GiB; what is left fills within seconds.
LIMIT = 2 << 30


@pytest.fixture(name="group")
def _group() -> Iterator[Path]:
    """A control group of 2 GiB."""
    base = Path("/sys/fs/cgroup")
    old = (base / "memory").is_dir()
    folder = base / ("memory" if old else "") / f"dsdoctor-test-{os.getpid()}"
    try:
        folder.mkdir()
        limit = folder / ("memory.limit_in_bytes" if old else "memory.max")
        limit.write_text(str(LIMIT))
    except OSError as error:
        pytest.fail(f"no control group can be made here: {error}")
    yield folder
    folder.rmdir()


@pytest.mark.train
def test_a_real_kill_for_lack_of_memory_is_named(
    tmp_path: Path, group: Path, job: str, port: str
) -> None:
    enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    command = [*RUN, "--preflight", "off", "--every", "0.2s", "--"]
    command += [*launch("torchrun", tmp_path, port), job, "memory"]
    done = subprocess.run(
        ["sh", "-c", enter, "sh", *command],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 1, done.stderr
    assert "cause: host-oom-killed" in done.stderr
    assert "memory of the job's control group is" in done.stderr
    found = record(tmp_path)
    assert found["diagnosis"]["causes"][0]["condition"] == "host-oom-killed"
    assert ended_first(found, 1)


@pytest.fixture(name="small_disk")
def _small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 4 MiB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", str(folder)], check=False
    )
    if done.returncode != 0:
        pytest.fail("no file system can be mounted here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.train
def test_a_disk_that_a_checkpoint_fills_is_named(
    tmp_path: Path, small_disk: Path, job: str, port: str
) -> None:
    out = small_disk / "out"  # DeepSpeed makes it
    words = (*launch("deepspeed", tmp_path, port), job, "disk", "--output_dir", str(out))
    done = quick(tmp_path, "--", *words)
    assert done.returncode != 0
    assert "cause: disk-full" in done.stderr, done.stderr
    assert f"disk {small_disk}" in {notice["key"] for notice in record(tmp_path)["notices"]}


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
