"""What is cleaned up when dsdoctor itself is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

import dsdoctor.probes
from dsdoctor.host import free_port

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the guard needs /proc")
GUARD = Path(dsdoctor.probes.__file__).parent / "children" / "guard.py"
SHM = Path("/dev/shm")


@pytest.mark.parametrize("noted", [True, False])
def test_buffers_of_the_runs_port_go_with_its_folder(tmp_path: Path, noted: bool) -> None:
    folder, port, mark = tmp_path / "run", free_port(), uuid.uuid4().hex
    folder.mkdir()
    (folder / "port").write_text(str(port) if noted else "a port")
    start = f"deepspeed_allreduce_buffer_{os.getuid()}_{mark}"
    ours, others = SHM / f"{start}_{port}_0", SHM / f"{start}_1{port}_0"
    try:
        for path in (ours, others):
            path.write_bytes(b"x")
        subprocess.run(
            [sys.executable, "-I", str(GUARD), mark, str(folder)],
            stdin=subprocess.DEVNULL, check=True, timeout=300,
        )  # fmt: skip
        assert not folder.exists()
        assert ours.exists() is not noted
        assert others.exists(), "of another port"
    finally:
        for path in (ours, others):
            path.unlink(missing_ok=True)


def test_a_buffer_that_a_process_has_mapped_stays(tmp_path: Path) -> None:
    folder, port, mark = tmp_path / "run", free_port(), uuid.uuid4().hex
    folder.mkdir()
    (folder / "port").write_text(str(port))
    path = SHM / f"deepspeed_allreduce_buffer_{os.getuid()}_{mark}_{port}_0"
    path.write_bytes(b"x" * 4096)
    holds = (
        "import mmap, sys; f = open(sys.argv[1], 'r+b'); m = mmap.mmap(f.fileno(), 0); "
        "print(flush=True); sys.stdin.read()"
    )
    try:
        with subprocess.Popen(
            [sys.executable, "-c", holds, str(path)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        ) as holder:  # fmt: skip
            assert holder.stdout is not None
            assert holder.stdout.readline() == b"\n"
            subprocess.run(
                [sys.executable, "-I", str(GUARD), mark, str(folder)],
                stdin=subprocess.DEVNULL, check=True, timeout=300,
            )  # fmt: skip
            assert path.exists()
            holder.communicate()
    finally:
        path.unlink(missing_ok=True)
