"""`dsdoctor run` on real terminals: what is shown, and where a typed Ctrl-C goes."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

from dsdoctor.run import start, store
from dsdoctor.run.options import RunOptions
from tests.run.support import RUN, environment, python, record

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")


def _on_terminal(command: list[str], env: dict[str, str]) -> bytes:
    outer, inner = pty.openpty()
    with subprocess.Popen(
        command, stdin=inner, stdout=inner, stderr=inner, env=env, start_new_session=True
    ) as child:
        os.close(inner)
        data = b""
        while True:
            try:
                chunk = os.read(outer, 65536)
            except OSError:
                break
            if not chunk:
                break
            data += chunk
        child.wait(200)
    os.close(outer)
    return data


def test_a_terminal_gets_byte_for_byte_what_it_would_get_without_us(tmp_path: Path) -> None:
    text = (
        "import sys, shutil; print('tty', sys.stdout.isatty(), sys.stdin.isatty(),"
        " shutil.get_terminal_size()); sys.stdout.write('50%\\r100%\\n'); print('end')"
    )
    plain = _on_terminal(list(python(text)), environment(tmp_path))
    ours = _on_terminal(
        [*RUN, "--preflight", "off", "-q", "--", *python(text)], environment(tmp_path)
    )
    assert plain == ours
    assert b"tty True True" in ours


def test_ctrl_c_on_a_terminal_reaches_the_command_alone(tmp_path: Path) -> None:
    text = (
        "import time\ntry:\n  print('ready', flush=True); time.sleep(600)\n"
        "except KeyboardInterrupt:\n  print('caught', flush=True); raise SystemExit(5)"
    )
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [*RUN, "--preflight", "off", "-q", "--", *python(text)],
        stdin=inner, stdout=inner, stderr=inner, env=environment(tmp_path),
        preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        start_new_session=True,
    ) as child:  # fmt: skip
        os.close(inner)
        seen = b""
        while b"ready" not in seen:
            seen += os.read(outer, 4096)
        os.write(outer, b"\x03")
        while b"caught" not in seen:
            seen += os.read(outer, 4096)
        assert child.wait(200) == 5
    os.close(outer)


#: A launcher with a rank in its group: the first Ctrl-C is a request, the second one ends it.
TWICE = """
import os, signal, sys, time
rank = os.fork() == 0
def got(number, frame):
    global seen
    seen += 1
    os.write(2, b"%s %d\\n" % (b"rank" if rank else b"launcher", seen))
    if seen == 2: os._exit(0) if rank else (os.waitpid(-1, 0), os._exit(7))
seen = 0
signal.signal(signal.SIGINT, got)
os.write(2, b"ready\\n")
while True: time.sleep(0.1)
"""


@pytest.mark.parametrize("piped", [False, True], ids=["a terminal", "output in a pipe"])
def test_two_ctrl_c_reach_the_job_once_each_and_ours_ends_after_it(
    tmp_path: Path, *, piped: bool
) -> None:
    outer, inner = pty.openpty()
    with subprocess.Popen(
        [*RUN, "--preflight", "off", "--", *python(TWICE)],
        stdin=inner, stdout=subprocess.DEVNULL if piped else inner, stderr=inner,
        env=environment(tmp_path),
        preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        start_new_session=True,
    ) as child:  # fmt: skip
        os.close(inner)
        seen = b""

        def read_until(*words: bytes, times: int = 1) -> None:
            nonlocal seen
            while any(seen.count(word) < times for word in words):
                seen += os.read(outer, 4096)

        read_until(b"ready", times=2)  # both have their handlers
        os.write(outer, b"\x03")
        read_until(b"launcher 1", b"rank 1")
        assert child.poll() is None
        os.write(outer, b"\x03")
        read_until(b"launcher 2", b"rank 2", b"kept in")
        assert child.wait(200) == 7
    os.close(outer)
    assert [seen.count(word) for word in (b"launcher ", b"rank ")] == [2, 2]
    assert record(tmp_path)["status"] == 7


def test_a_ctrl_c_after_the_end_leaves_status_and_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "_end", interrupted)
    before = signal.getsignal(signal.SIGINT)
    said: list[str] = []
    command = tuple(python("raise SystemExit(6)"))
    options = RunOptions(command=command, preflight="off", base=tmp_path / "runs")
    assert start.execute(options, said.append) == 6
    assert said == ["interrupted: the end of this run was not diagnosed"]
    assert record(tmp_path)["status"] == 6
    assert signal.getsignal(signal.SIGINT) is before


def test_a_ctrl_c_between_two_attempts_starts_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cause(_folder: Path) -> tuple[str, str]:
        signal.raise_signal(signal.SIGINT)
        return "node-lost", "another node may do"

    monkeypatch.setattr(start, "_passing_cause", cause)
    monkeypatch.setattr(start, "_end", lambda folder, found, *_, **__: store.save(folder, found))
    command = tuple(python("raise SystemExit(6)"))
    options = RunOptions(command=command, preflight="off", restarts=3, base=tmp_path / "runs")
    assert start.execute(options, lambda _: None) == 6
    assert record(tmp_path)["attempts"] == 1
