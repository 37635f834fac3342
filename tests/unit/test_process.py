from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from dsdoctor import process

pytestmark = pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")


def test_output_and_status_are_kept() -> None:
    result = process.run(["sh", "-c", "echo out; echo err >&2; exit 3"], timeout=60)
    assert (result.returncode, result.stdout, result.stderr) == (3, b"out\n", b"err\n")
    assert not result.ok
    assert result.error_text == "err"


def test_a_hang_ends_at_the_deadline() -> None:
    result = process.run(["sleep", "60"], timeout=0.3)
    assert result.timed_out
    assert result.returncode is None
    assert result.seconds < 60


def test_a_child_that_ignores_sigterm_is_killed() -> None:
    script = "trap '' TERM; echo $$; sleep 600 & wait; sleep 600"
    result = process.run(["sh", "-c", script], timeout=100, idle_timeout=2)
    assert result.timed_out
    with pytest.raises(ProcessLookupError):
        os.kill(int(result.text), 0)


def test_what_a_killed_child_kept_in_temporary_files_goes_with_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sibling = tmp_path / f"dsdoctor-{process.RUN_ID}-1-of-another-child"
    sibling.mkdir()
    script = 'made=$1/dsdoctor-$DSDOCTOR_RUN-$$-x; mkdir "$made"; echo "$made"; exec sleep 60'
    result = process.run(["sh", "-c", script, "sh", str(tmp_path)], timeout=3)
    assert result.timed_out
    made = Path(result.stdout.decode().strip())
    assert made.parent == tmp_path
    assert not made.exists()
    assert sibling.is_dir()
    process.kill_all()
    assert not sibling.exists()


def test_silence_is_told_from_slowness() -> None:
    script = "for i in 1 2 3 4; do echo $i; sleep 0.2; done; sleep 60"
    result = process.run(["sh", "-c", script], timeout=100, idle_timeout=2.0)
    assert result.idle
    assert result.stdout == b"1\n2\n3\n4\n"


def test_a_grandchild_that_holds_the_pipe_is_not_waited_for() -> None:
    result = process.run(["sh", "-c", "sleep 60 & echo done"], timeout=100)
    assert result.stdout == b"done\n"
    assert result.seconds < 60


def test_more_output_than_a_pipe_holds() -> None:
    result = process.run([sys.executable, "-c", "print('x' * 3_000_000)"], timeout=60)
    assert len(result.stdout) == 3_000_001


def test_a_missing_program_is_an_os_error() -> None:
    with pytest.raises(OSError, match="no-such-program"):
        process.run(["no-such-program"], timeout=1)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_descendants_in_sessions_of_their_own_are_swept() -> None:
    script = (
        "import subprocess, sys\n"
        "p = subprocess.Popen(['sleep', '60'], start_new_session=True, stdout=subprocess.DEVNULL)\n"
        "print(p.pid)\n"
    )
    result = process.run([sys.executable, "-c", script], timeout=60)
    pid = int(result.stdout)
    assert pid in set(process.marked_pids())
    assert process.sweep() == ()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and _alive(pid):
        time.sleep(0.02)
    assert not _alive(pid)


def _alive(pid: int) -> bool:
    state = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return bool(state) and not state.startswith("Z")


def test_a_signal_is_a_negative_status() -> None:
    result = process.run(["sh", "-c", "kill -ABRT $$"], timeout=60)
    assert result.returncode == -signal.SIGABRT


def test_text_is_told_from_garbage() -> None:
    assert process.Result(argv=("x",), returncode=0, stdout=b"ok\n").is_text
    assert not process.Result(argv=("x",), returncode=0, stdout=b"\xff\xfe\x00").is_text
    assert not process.Result(argv=("x",), returncode=0, stdout=b"a\0b").is_text


def test_a_child_that_does_not_read_keeps_its_deadline() -> None:
    begun = time.monotonic()
    done = process.run(
        [sys.executable, "-c", "import time; time.sleep(60)"], timeout=0.5, stdin=b"x" * (1 << 20)
    )
    assert done.timed_out
    assert time.monotonic() - begun < 60


def test_a_child_that_reads_gets_everything_and_one_that_is_gone_does_no_harm() -> None:
    data = bytes(range(256)) * (1 << 13)
    code = "import hashlib, sys; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())"
    done = process.run([sys.executable, "-c", code], timeout=60, stdin=data)
    assert done.text.strip() == hashlib.sha256(data).hexdigest()
    assert process.run([sys.executable, "-c", ""], timeout=60, stdin=data).ok
