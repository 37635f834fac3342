"""Deaths that need root: a real out-of-memory kill in a control group, a full file system."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.run.support import RUN, environment, quick, record

pytestmark = [
    pytest.mark.system,
    pytest.mark.skipif(sys.platform != "linux" or os.geteuid() != 0, reason="needs root on Linux"),
]
LIMIT = 300 << 20
#: Takes 8 MiB at a time; the last of them one by one, each when the one before was sampled.
EATER = """
import glob, os, time
def rows():
    paths = glob.glob(os.environ["DSDOCTOR_RUNS"] + "/*/samples.jsonl")
    return sum(open(path).read().count("\\n") for path in paths)
kept = []
while True:
    kept.append(bytearray(8 << 20))
    before = rows()
    while len(kept) > {quick} and rows() == before: time.sleep(0.02)
"""


@pytest.fixture(name="group")
def _group() -> Iterator[Path]:
    """A control group of 300 MiB."""
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


def test_a_real_kill_for_lack_of_memory_is_named(tmp_path: Path, group: Path) -> None:
    eat = EATER.format(quick=LIMIT * 6 // 10 >> 23)
    enter = f'echo $$ > {group}/cgroup.procs; exec "$@"'
    command = [*RUN, "--preflight", "off", "--every", "0.2s", "--", sys.executable, "-c", eat]
    done = subprocess.run(
        ["sh", "-c", enter, "sh", *command],
        env=environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.returncode == 137, done.stderr
    assert "cause: host-oom-killed" in done.stderr
    assert "memory of the job's control group is" in done.stderr
    causes = record(tmp_path)["diagnosis"]["causes"]
    assert causes[0]["condition"] == "host-oom-killed"


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


def test_a_full_disk_is_named(tmp_path: Path, small_disk: Path) -> None:
    write = (
        "import sys\nwith open(sys.argv[1] + '/checkpoint.pt', 'wb', buffering=0) as file:\n"
        "    while True:\n"
        "        if file.write(bytes(1 << 20)) == 0 or file.tell() > 64 << 20: break"
    )
    out = small_disk / "out"  # the script would make it
    done = quick(
        tmp_path, "--", sys.executable, "-c", write, str(small_disk), "--output_dir", str(out)
    )
    assert done.returncode == 1
    assert "cause: disk-full" in done.stderr
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
