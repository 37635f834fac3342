"""`dsdoctor run` as a user sees it: real commands, pipes, terminals and signals."""

from __future__ import annotations

import gzip
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor import process
from dsdoctor.model.run_record import RunRecord
from dsdoctor.run import preflight, start, store
from dsdoctor.run.options import RunOptions
from dsdoctor.testing import FakeHost
from tests.run.support import (
    RUN,
    environment,
    folder_of,
    python,
    quick,
    record,
    run,
    running,
    wait_for,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")

TALK = "import sys; print('out'); print('err', file=sys.stderr); sys.exit({status})"


@pytest.mark.parametrize("status", [0, 1, 7, 126, 255])
def test_streams_and_status_are_the_commands_own(tmp_path: Path, status: int) -> None:
    done = quick(tmp_path, *python(TALK.format(status=status)))
    assert done.returncode == status
    assert done.stdout == "out\n"
    assert done.stderr.startswith("err\n") or "\nerr\n" in done.stderr
    assert record(tmp_path)["status"] == status


def test_a_command_killed_by_a_signal_gives_the_shells_status(tmp_path: Path) -> None:
    done = quick(tmp_path, "sh", "-c", "kill -9 $$")
    assert done.returncode == 128 + signal.SIGKILL
    assert "was killed by SIGKILL" in done.stderr
    assert record(tmp_path)["status"] == -signal.SIGKILL


def test_standard_input_reaches_the_command(tmp_path: Path) -> None:
    done = run(tmp_path, "--preflight", "off", "--", "tr", "a-z", "A-Z", stdin="abc\n")
    assert done.stdout == "ABC\n"


BYTES = "import sys,os; os.write(1, bytes(range(256)) * 40); os.write(2, b'\\x1b[31mred\\r\\n')"


def test_a_pipe_gets_byte_for_byte_what_it_would_get_without_us(tmp_path: Path) -> None:
    plain = subprocess.run(python(BYTES), capture_output=True, check=True)
    ours = subprocess.run(
        [*RUN, "--preflight", "off", "-q", "--", *python(BYTES)],
        env=environment(tmp_path), capture_output=True, check=True,
    )  # fmt: skip
    assert (ours.stdout, ours.stderr) == (plain.stdout, plain.stderr)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2"])
def test_signals_are_passed_on(tmp_path: Path, name: str) -> None:
    text = (
        "import signal, sys, time\n"
        f"def got(*_): print('got', flush=True); sys.exit(9)\n"
        f"signal.signal(signal.{name}, got); print('ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    with running(tmp_path, "--", *python(text)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, getattr(signal, name))
        assert child.stdout.readline() == "got\n"
        assert child.wait(200) == 9


def test_a_command_may_use_its_grace_after_a_term(tmp_path: Path) -> None:
    text = (
        "import signal, sys, time\n"
        "def save(*_):\n  time.sleep(1.5); print('saved', flush=True); sys.exit(0)\n"
        "signal.signal(signal.SIGTERM, save); print('ready', flush=True)\n"
        "while True: time.sleep(0.1)"
    )
    with running(tmp_path, "--", *python(text)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        os.kill(child.pid, signal.SIGTERM)
        assert child.stdout.readline() == "saved\n"
        assert child.wait(200) == 0


def _children(pid: int, word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                line = (entry / "cmdline").read_bytes()
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            except OSError:
                continue
            if parent == pid and word.encode() in line:
                found.append(int(entry.name))
    return found


def test_the_job_lives_on_when_the_watcher_is_killed(tmp_path: Path) -> None:
    text = (
        "import os, sys, time; print('ready', flush=True)\n"
        f"while not os.path.exists({str(tmp_path / 'end')!r}): time.sleep(0.05)\nprint('done')"
    )
    with running(tmp_path, "--", *python(text)) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        killed: set[int] = set()
        while len(killed) < 3:
            fresh = wait_for(
                lambda: [p for p in _children(child.pid, "watch_host.py") if p not in killed]
            )
            os.kill(fresh[0], signal.SIGKILL)
            killed.add(fresh[0])
        assert child.stderr is not None
        line = ""
        while "no longer watched" not in line:
            line = child.stderr.readline()
            assert line, "it was not said"
        (tmp_path / "end").touch()
        out, _ = child.communicate(timeout=200)
    assert out == "done\n"
    assert child.returncode == 0


def test_nothing_is_left_behind(tmp_path: Path) -> None:
    with running(tmp_path, "--", *python("print('x')")) as child:
        child.communicate(timeout=200)
    left = [
        entry.name
        for entry in Path("/proc").iterdir()
        if entry.name.isdigit() and _mentions(entry, str(tmp_path))
    ]
    assert left == []


def _mentions(entry: Path, word: str) -> bool:
    try:
        return word.encode() in (entry / "cmdline").read_bytes()
    except OSError:
        return False


def test_much_output_is_passed_on_whole_and_kept_in_part(tmp_path: Path) -> None:
    text = (
        "import os, hashlib\nblock = (b'x' * 99 + b'\\n') * 10000\n"
        "for i in range(300): os.write(1, b'%08d' % i + block)"
    )
    done = subprocess.run(
        [*RUN, "--preflight", "off", "-q", "--", *python(text)],
        env=environment(tmp_path), stdout=subprocess.PIPE, check=True, timeout=500,
    )  # fmt: skip
    assert len(done.stdout) == 300 * (1_000_000 + 8)
    found = record(tmp_path)
    assert found["output_bytes"] == len(done.stdout)
    assert 0 < found["output_dropped"] < len(done.stdout)
    kept = b"".join(
        gzip.decompress(path.read_bytes())
        for path in sorted(folder_of(tmp_path).glob("output-*.gz"))
    )
    assert len(kept) + found["output_dropped"] == len(done.stdout)
    assert kept.startswith(done.stdout[:1000])
    assert kept.endswith(done.stdout[-1000:])


def test_a_reader_that_goes_away_ends_the_command_as_it_would_without_us(tmp_path: Path) -> None:
    text = "import sys\nwhile True: print('y')"
    with subprocess.Popen(
        [*RUN, "--preflight", "off", "-q", "--", *python(text)],
        env=environment(tmp_path), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        child.stdout.read(1000)
        child.stdout.close()
        assert child.wait(200) in (1, 120, 128 + signal.SIGPIPE)


def test_the_check_refuses_with_its_own_status(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "deepspeed", str(tmp_path / "absent.py"))
    assert done.returncode == 79
    assert "launch-file-missing" in done.stderr
    assert "`--force`" in done.stderr
    assert record(tmp_path)["preflight"] == "failed"


def test_a_script_may_activate_an_environment_that_is_not_active_here(tmp_path: Path) -> None:
    host = FakeHost(env={"PATH": "/usr/bin"})
    named = FakeHost(env={"DSDOCTOR_PYTHON": "/e/bin/python"}, files={"/e/bin/python": ""})
    assert preflight.chooses_itself(["bash", "launch.sh"], host)
    assert not preflight.chooses_itself(["python", "train.py"], host)
    assert not preflight.chooses_itself(["deepspeed", "train.py"], host)
    assert not preflight.chooses_itself(["bash", "launch.sh"], named)
    hidden = {"DSDOCTOR_PYTHON": "", "VIRTUAL_ENV": "", "PATH": "/usr/bin:/bin"}
    done = run(tmp_path, "--", "bash", "-c", "echo started", env=hidden)
    assert (done.returncode, done.stdout) == (0, "started\n"), done.stderr


@pytest.mark.parametrize("written", ["", '{"findings": [{"sta', "[1]"])
def test_a_report_that_was_cut_off_does_not_prevent_the_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str
) -> None:
    said: list[str] = []
    (tmp_path / store.CHECK_REPORT).write_text(written)
    ended = process.Result(argv=("x",), returncode=1, stderr=b"No space left on device")
    monkeypatch.setattr(process, "run", lambda *_, **__: ended)
    record = RunRecord()
    options = RunOptions(command=("true",))
    assert start._may_start(options, tmp_path, record, said.append)
    assert record.preflight == "inconclusive"
    assert said == ["the preflight check did not finish: No space left on device"]


def test_force_starts_all_the_same(tmp_path: Path) -> None:
    done = run(tmp_path, "--force", "--", sys.executable, str(tmp_path / "absent.py"))
    assert done.returncode == 2
    assert "can't open file" in done.stderr
    assert "the check before the start" not in done.stderr  # the cause is what it had reported


def test_what_was_forced_is_recalled_where_no_cause_is_known(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("raise SystemExit(3)")
    words = [sys.executable, str(script), "--deepspeed", "absent.json"]
    done = run(tmp_path, "--force", "--", *words)
    assert done.returncode == 3
    assert "the check before the start had reported ds-config-unreadable\n" in done.stderr


def test_a_passed_check_leaves_a_snapshot(tmp_path: Path) -> None:
    done = run(tmp_path, "--", "true")
    assert done.returncode == 0
    assert record(tmp_path)["preflight"] == "passed"
    assert (folder_of(tmp_path) / "snapshot.json").is_file()


MISUSE = [
    (("echo", "hi"), 2, "put `--` before the command"),
    (("echo", "--", "hi"), 2, "only options come before `--`"),
    (("--",), 2, "no command after `--`"),
    (("--every", "soon", "--", "true"), 2, "is not a duration"),
    (("--every", "0.01", "--", "true"), 2, "is too short"),
    (("--hang-after", "-3", "--", "true"), 2, "is not a duration"),
    (("--preflight", "off", "--", "/nowhere/cmd"), 2, "cannot be started"),
    (("--metrics", "/nowhere/x.prom", "--", "true"), 2, "is not a folder that you may write"),
    (("--metrics", "/etc/passwd/x.prom", "--", "true"), 2, "is not a folder that you may write"),
    (("--requeue", "--", "true"), 2, "needs a Slurm job"),
    (("show", "2020"), 2, "no run is saved"),
    (("list", "extra"), 2, "unexpected argument"),
    (("--runs-dir", "/dev/null/x", "--", "true"), 2, "cannot store the records"),
]


@pytest.mark.parametrize(("words", "status", "said"), MISUSE)
def test_misuse_is_one_line(tmp_path: Path, words: tuple[str, ...], status: int, said: str) -> None:
    done = run(tmp_path, *words)
    assert done.returncode == status, done.stderr
    assert said.lower() in (done.stdout + done.stderr).lower()
    assert "Traceback" not in done.stderr
    if status:
        assert len(done.stderr.strip().splitlines()) == 1
    assert not list((tmp_path / "runs").glob("*"))  # nothing was run


def test_variables_are_announced_and_those_of_the_user_stay(tmp_path: Path) -> None:
    text = "import os, json; print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(('TORCH_', 'PYTHONFAULT'))}))"
    env = {**environment(tmp_path), "TORCH_FR_BUFFER_SIZE": "17"}
    command = [*RUN, "--preflight", "off", "-q"]
    on = subprocess.run([*command, "--", *python(text)], env=env, capture_output=True, check=True)
    seen = json.loads(on.stdout)
    assert seen["TORCH_FR_BUFFER_SIZE"] == "17"
    assert seen["TORCH_NCCL_DUMP_ON_TIMEOUT"] == "1"
    assert seen["PYTHONFAULTHANDLER"] == "1"
    off = subprocess.run(
        [*command, "--env", "off", "--", *python(text)], env=env, capture_output=True, check=True
    )
    plain = subprocess.run(python(text), env=env, capture_output=True, check=True)
    assert off.stdout == plain.stdout


def test_a_secret_on_the_command_line_is_not_kept(tmp_path: Path) -> None:
    quick(tmp_path, "sh", "-c", "exit 0", "x", "--hub_token", "hf_" + "a1B2" * 9)
    words = record(tmp_path)["command"]
    assert words[-1] == "[masked]"
    assert not any("a1B2a1B2" in word for word in words)


def test_only_the_first_task_of_a_step_speaks(tmp_path: Path) -> None:
    env = {**environment(tmp_path), "SLURM_PROCID": "3"}
    done = subprocess.run(
        [*RUN, "--preflight", "off", "--", "true"], env=env, capture_output=True, check=True
    )
    assert done.stderr == b""


def test_a_run_that_is_still_going_is_listed_as_running(tmp_path: Path) -> None:
    text = "import time; print('ready', flush=True); time.sleep(600)"
    with running(tmp_path, "--", *python(text)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        listed = run(tmp_path, "list")
        assert re.search(r"  running  (?!0 s)[\d.]+ s  ", listed.stdout), listed.stdout
        os.kill(child.pid, signal.SIGTERM)
        child.wait(200)


def test_a_run_whose_dsdoctor_was_killed_is_not_listed_as_running(tmp_path: Path) -> None:
    text = "import time; print('ready', flush=True); time.sleep(600)"
    with running(tmp_path, "--", *python(text)) as child:
        assert child.stdout is not None
        child.stdout.readline()
        job = _children(child.pid, "time.sleep(600)")
        child.kill()
        child.wait(200)
        os.kill(job[0], signal.SIGKILL)
    assert "unknown: dsdoctor was killed  -  " in run(tmp_path, "list").stdout


def test_ctrl_c_during_the_check_leaves_no_run(tmp_path: Path) -> None:
    words = [*RUN, "--preflight", "full", "--", "sleep", "600"]
    with subprocess.Popen(
        words, env=environment(tmp_path), stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as child:
        wait_for(lambda: _children(child.pid, "dsdoctor.run.preflight"))
        os.kill(child.pid, signal.SIGINT)
        _, said = child.communicate(timeout=200)
    assert child.returncode == 130
    assert said.strip() == "dsdoctor: interrupted"
    assert list((tmp_path / "runs").iterdir()) == []


def test_a_command_that_ends_while_its_daemon_lives_is_not_waited_for(tmp_path: Path) -> None:
    text = f"setsid sh -c 'while ! test -e {tmp_path}/end; do sleep 0.1; done' & echo started"
    done = quick(tmp_path, "--", "sh", "-c", text)
    (tmp_path / "end").touch()
    assert (done.returncode, done.stdout) == (0, "started\n")


def test_a_line_without_end_costs_no_memory_and_is_passed_on(tmp_path: Path) -> None:
    text = (
        "import os\nfor _ in range(60): os.write(1, b'loss ' * (1 << 18))\n"
        "import resource\nprint(flush=True)"
    )
    probe = (
        "import resource, subprocess, sys\n"
        "done = subprocess.run(sys.argv[1:], stdout=subprocess.PIPE)\n"
        "print(len(done.stdout), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss >> 10)"
    )
    words = [*python(probe), *RUN, "--preflight", "off", "-q", "--", *python(text)]
    done = subprocess.run(
        words, env=environment(tmp_path), capture_output=True, text=True, check=True
    )
    size, mib = map(int, done.stdout.split())
    assert size == 60 * 5 * (1 << 18) + 1
    assert mib < 120, f"{mib} MiB"


def test_a_job_that_ends_well_does_not_wait_for_what_reads_logs(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *RUN[1:], "--preflight", "off", "-q", "--", "true"],
        env=environment(tmp_path), capture_output=True, text=True, check=True,
    )  # fmt: skip
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
    assert "dsdoctor.run.supervise" in loaded
    assert not loaded & {
        "dsdoctor.logs",
        "dsdoctor.packs.loading",
        "dsdoctor.machines.known_good",
        "rich",
    }


def test_old_runs_are_removed_but_never_the_last_that_failed(tmp_path: Path) -> None:
    base = tmp_path / "runs"
    for number, status in enumerate((1, 0, 3, 0, 0)):
        folder = store.create(base, ("train.py",))
        (folder / "output-000001.log.gz").write_bytes(b"x" * 5000)
        made = RunRecord(id=folder.name, started=f"2026-11-22T10:00:0{number}Z", status=status)
        store.save(folder, made)
    store.prune(base, kept=22000)  # each takes 5000 bytes and its record
    assert [found.status for _, found in store.all_runs(base)] == [3, 0, 0]
    store.prune(base, kept=0)
    assert [found.status for _, found in store.all_runs(base)] == [3, 0]
