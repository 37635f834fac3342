"""`dsdoctor run` on real terminals: what is shown, and where a typed Ctrl-C goes."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import shlex
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dsdoctor.run import restarts, start, store
from dsdoctor.run.options import RunOptions
from tests.run.support import RUN, environment, python, quick, record, wait_for

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


#: What a job wrote last, and what dsdoctor's first line is to begin after.
ENDINGS = {
    "a progress bar": ("50%|#####     | 5/10", "5/10{end}"),
    "a bar that went back": ("50%|#####     |\\r", "|\r{end}"),
    "a line": ("step 1\\n", "step 1{end}"),
    "a line in color": ("step 1\\n\\033[0m", "step 1{end}\033[0m"),
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("where", ["a terminal", "a file"])
def test_our_lines_begin_where_none_of_the_job_is_begun(
    tmp_path: Path, where: str, ending: str
) -> None:
    wrote, shown = ENDINGS[ending]
    text = f"import sys; sys.stderr.write('{wrote}'); sys.exit(3)"
    command = [*RUN, "--preflight", "off", "--", *python(text)]
    if where == "a terminal":
        # a terminal that is no longer raw adds a carriage return of its own
        data = _on_terminal(command, environment(tmp_path)).replace(b"\r\r\n", b"\r\n")
    else:
        with (tmp_path / "log").open("wb") as log:
            subprocess.run(
                command, env=environment(tmp_path), stdout=log, stderr=log, check=False, timeout=200
            )
        data = (tmp_path / "log").read_bytes()
    end = "\r\n" if where == "a terminal" else "\n"
    assert shown.format(end=end).encode() + b"dsdoctor: the job exited" in data, data


def test_nothing_is_added_where_the_job_writes_elsewhere(tmp_path: Path) -> None:
    done = quick(tmp_path, *python("import sys; print('50%', end=''); sys.exit(3)"))
    assert done.stdout == "50%"
    assert done.stderr.startswith("dsdoctor: the job exited")


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
    assert [(one["name"], one["typed"]) for one in record(tmp_path)["signals"]] == [
        ("SIGINT", True)
    ]


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
        read_until(b"launcher 2", b"rank 2", b"saved in")
        assert child.wait(200) == 7
    os.close(outer)
    assert [seen.count(word) for word in (b"launcher ", b"rank ")] == [2, 2]
    found = record(tmp_path)
    assert found["status"] == 7
    # in a pipe the terminal sends it to the job itself
    assert [sent["typed"] for sent in found["signals"]] == ([] if piped else [True, True])


def test_a_job_that_takes_a_ctrl_c_for_its_end_is_told_so(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        (tmp_path / "job.sh").write_text(
            'trap "exit 130" INT; echo be""gun; while :; do sleep 0.1; done'
        )
        bash.type(shlex.join([*RUN, "--preflight", "off", "--", "sh", "job.sh"]) + "\n")
        bash.until("begun")
        bash.type("\x03")
        assert "cause: Ctrl-C was typed on the job's terminal" in bash.until("saved in")
        bash.type(shlex.join([*RUN, "show", "last"]) + "\n")
        assert "cause     Ctrl-C was typed on the job's terminal" in bash.until("saved in ")


def test_a_job_that_went_on_after_a_ctrl_c_did_not_end_by_it(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        (tmp_path / "job.sh").write_text(
            'trap "exit 3" INT; echo be""gun; while :; do sleep 0.1; done'
        )
        bash.type(shlex.join([*RUN, "--preflight", "off", "--", "sh", "job.sh"]) + "\n")
        bash.until("begun")
        bash.type("\x03")
        assert "cause: unknown; the output shows no failure" in bash.until("saved in")


#: Looks for 20 s whether keys are echoed and lines can be edited.
COOKED = """
for _ in $(seq 100); do
  case $(stty -a) in *" icanon"*" echo "*) echo it is a job"'"s; exit ;; esac
  sleep 0.2
done
"""


def test_a_job_brought_from_the_background_has_the_terminal_of_a_job(tmp_path: Path) -> None:
    """Behind `&` the settings of the terminal are those of a shell that edits its next line."""
    (tmp_path / "job.sh").write_text(COOKED)
    words = shlex.join([*RUN, "--preflight", "off", "--", "sh", "job.sh"])
    with shell(tmp_path, "--norc") as bash:  # readline edits
        bash.type(f"{words} & \n")
        wait_for(lambda: list((tmp_path / "runs").glob("*/samples.jsonl")))
        bash.type("fg\n")
        assert "it is a job's" in bash.until("done in")


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

    monkeypatch.setattr(restarts, "passing_cause", cause)
    monkeypatch.setattr(start, "_end", lambda folder, found, *_, **__: store.save(folder, found))
    command = tuple(python("raise SystemExit(6)"))
    options = RunOptions(command=command, preflight="off", restarts=3, base=tmp_path / "runs")
    assert start.execute(options, lambda _: None) == 6
    assert record(tmp_path)["attempts"] == 1


class Shell:
    """An interactive bash on a terminal of its own."""

    def __init__(self, outer: int) -> None:
        self.outer = outer

    def type(self, text: str) -> None:
        os.write(self.outer, text.encode())

    def until(self, *words: str) -> str:
        """Reads until all of these have been shown since the last call, and returns what was."""
        data = b""
        while not all(word.encode() in data for word in words):
            data += os.read(self.outer, 65536)  # OSError: the shell has ended
        return data.decode("utf-8", "replace")

    def until_counted_on(self, shown: str) -> str:
        """Reads until the job has counted for a second more than what was shown before."""
        last, more = max(map(int, re.findall(r"count (\d+)", shown))), ""
        while not any(int(one) > last + 20 for one in re.findall(r"count (\d+)\r", more)):
            more += os.read(self.outer, 65536).decode("utf-8", "replace")
        return more


@contextmanager
def shell(folder: Path, *options: str) -> Iterator[Shell]:
    outer, inner = pty.openpty()
    env = {**environment(folder), "PS1": "ready$ ", "TERM": "dumb"}
    with subprocess.Popen(
        ["bash", *(options or ("--norc", "--noediting")), "-i"],
        stdin=inner, stdout=inner, stderr=inner, env=env, cwd=folder,
        preexec_fn=lambda: fcntl.ioctl(inner, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        start_new_session=True,
    ) as child:  # fmt: skip
        os.close(inner)
        try:
            yield Shell(outer)
        finally:
            os.close(outer)  # the terminal hangs up
            child.wait(200)


COUNTS = """
import time
for number in range(6000):
    print(f"count {number}", flush=True)
    time.sleep(0.05)
"""


def _started(folder: Path, *options: str) -> str:
    (folder / "job.py").write_text(COUNTS)
    words = [*RUN, "--preflight", "off", "--every", "0.1s", *options]
    return shlex.join([*words, "--", sys.executable, "job.py"])


@pytest.mark.parametrize("where", ["", " > log 2>&1"], ids=["a terminal", "a file"])
def test_a_job_in_the_background_leaves_the_shell_its_terminal(tmp_path: Path, where: str) -> None:
    command = shlex.join([*RUN, "--preflight", "off", "--", "sh", "-c", "exit 0"])
    with shell(tmp_path) as bash:
        bash.type(f"{command}{where} &\n")
        bash.type("wait; echo still $((40 + 2))\n")
        bash.until("still 42")
        bash.type("stty -a; echo th$((1))s\n")
        assert " icanon" in bash.until("th1s")


@pytest.mark.parametrize("pipe", ["", " | cat"], ids=["a terminal", "output in a pipe"])
def test_ctrl_z_gives_the_shell_its_terminal_and_fg_goes_on(tmp_path: Path, pipe: str) -> None:
    with shell(tmp_path) as bash:
        bash.type(f"{_started(tmp_path, '--hang-after', '1s')}{pipe}\n")
        bash.until("count 3")
        bash.type("\x1a")
        before = bash.until("Stopped", "ready$ ")
        (samples,) = wait_for(lambda: list((tmp_path / "runs").glob("*/samples.jsonl")))
        count = samples.read_text().count("\n")
        # 2 s in which the job does nothing: it is no hang
        wait_for(lambda: samples.read_text().count("\n") > count + 20)
        bash.type("fg\n")
        shown = bash.until_counted_on(f"count 3 {before}")
        bash.type("\x03")
        shown += bash.until("saved in")
        assert "cause: interrupted-by-user" in shown, shown
        assert "no output and no work" not in shown
        bash.type("stty -a; echo th$((1))s\n")
        assert " icanon" in bash.until("th1s")
    assert record(tmp_path)["hang"] == ""


def test_a_job_that_bg_has_continued_can_be_brought_back(tmp_path: Path) -> None:
    with shell(tmp_path) as bash:
        bash.type(f"{_started(tmp_path)}\n")
        bash.until("count 3")
        bash.type("\x1a")
        shown = bash.until("Stopped", "ready$ ")
        bash.type("bg\n")
        shown = bash.until_counted_on(f"count 3 {shown}")
        bash.type("fg\n")
        bash.until_counted_on(shown)
        bash.type("\x03")
        assert "cause: interrupted-by-user" in bash.until("saved in")


def test_what_dsdoctor_says_is_broken_at_words(tmp_path: Path) -> None:
    outer, inner = pty.openpty()
    fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 60, 0, 0))
    with subprocess.Popen(
        [*RUN, "--preflight", "off", "--", "sh", "-c", "exit 5"],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=inner,
        env=environment(tmp_path),
    ) as child:  # fmt: skip
        os.close(inner)
        seen = b""
        while b"run show" not in seen:
            seen += os.read(outer, 4096)
        assert child.wait(200) == 5
    os.close(outer)
    said = seen.decode()
    assert "for details, run `dsdoctor run show" in " ".join(said.split())
    words = max(len(word) for word in said.split())
    assert max(len(line) for line in said.splitlines()) <= max(60, words + len("dsdoctor: "))
    assert [line for line in said.splitlines() if line.startswith(" " * 10)]
