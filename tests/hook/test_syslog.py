"""The line for syslog and journald, received by a real socket at /dev/log."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.skipif(
        not sys.platform.startswith("linux") or os.geteuid() != 0, reason="mounts a /dev of its own"
    ),
    pytest.mark.system,
]

RECEIVER = """
import socket, subprocess, sys
log = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
log.bind("/dev/log")
log.settimeout(20)
done = subprocess.run(sys.argv[1:], capture_output=True)
sys.stdout.write(log.recv(4096).decode())
"""


def received(*argv: str, **env: str) -> str:
    private = (
        "mount -t tmpfs dev /dev && mknod -m 666 /dev/null c 1 3 && "
        'mknod -m 666 /dev/urandom c 1 9 && exec "$@"'
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", private, "sh", sys.executable, "-c", RECEIVER, *argv],
        env={"PATH": os.environ["PATH"], **env},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_decision_is_one_line(tmp_path: Path) -> None:
    line = received(
        sys.executable,
        "-I",
        "-m",
        "dsdoctor",
        "hook",
        "slurm-prolog",
        "--run-folder",
        str(tmp_path / "run"),
        SLURM_JOB_ID="17",
        SLURMD_NODENAME="gpu-3",
    )
    assert "dsdoctor[" in line
    for word in ("hook=slurm-prolog", "decision=pass", "job=17", "node=gpu-3", "seconds="):
        assert word in line
    assert "\n" not in line.strip()


def test_the_wrapper_logs_what_it_lets_pass(tmp_path: Path) -> None:
    from dsdoctor.hook.wrapper import Wrapper

    script = tmp_path / "hook.sh"
    script.write_text(
        Wrapper("slurm-prolog", "/nowhere/python", run_folder=str(tmp_path / "run")).render()
    )
    # slurmd kills what a prolog leaves behind as soon as it has ended
    reaper = (
        "import os, signal, subprocess, sys\n"
        "child = subprocess.Popen(sys.argv[1:], start_new_session=True)\n"
        "child.wait()\n"
        "try: os.killpg(child.pid, signal.SIGKILL)\n"
        "except ProcessLookupError: pass\n"
    )
    line = received(sys.executable, "-c", reaper, "sh", str(script), SLURM_JOB_ID="18")
    assert "cause=no-interpreter" in line
    assert "job=18" in line
