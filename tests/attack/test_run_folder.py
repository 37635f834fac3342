"""Kept runs, gate logs and known good states that another account has laid out, read by root."""

from __future__ import annotations

import gzip
import json
import os
import re
import tarfile
import time
from pathlib import Path

import pytest

from dsdoctor import files
from tests.attack.conftest import Trap
from tests.support.command import Outcome, clean_environment, dsdoctor

ESCAPE = "\x1b]52;c;aGk=\x07\x1b[2J\x9b31m"
TAG = "<script>alert(1)</script><img src=x onerror=alert(1)>"
RECORD = {
    "schema": "dsdoctor/run",
    "version": 1,
    "id": "20260101-000000-t",
    "host": ESCAPE + TAG,
    "command": ["python", "t.py", ESCAPE, TAG],
    "cwd": ESCAPE + TAG,
    "started": "2026-01-01T00:00:00+00:00",
    "ended": ESCAPE,
    "seconds": 3.0,
    "status": 1,
    "preflight": ESCAPE + TAG,
    "hang": ESCAPE + TAG,
    "checkpoint": ESCAPE + TAG,
    "slurm_job": ESCAPE,
    "requeued_for": ESCAPE + TAG,
    "changed": [ESCAPE + TAG],
    "notices": [{"time": 1.0, "key": "k", "text": ESCAPE + TAG}],
    "signals": [{"name": ESCAPE + TAG, "time": 1.0}],
    "diagnosis": {"summary": ESCAPE + TAG, "causes": [{"condition": ESCAPE}, 7]},
}
NAME = "20260101-000000-t"
#: Seconds for a command that starts Python and reads a small folder, on a loaded machine.
SOON = 200.0


class Store:
    """A store of runs that belongs to the other account."""

    def __init__(self, trap: Trap, tmp_path: Path) -> None:
        self.trap = trap
        self.env = clean_environment(tmp_path)
        self.tmp_path = tmp_path
        self.run = trap.home / "runs" / NAME

    def record(self, name: str = NAME, **more: object) -> None:
        self.trap.file(f"runs/{name}/run.json", json.dumps({**RECORD, **more}))

    def __call__(self, *argv: str, address_mib: int | None = None) -> Outcome:
        done = dsdoctor(
            "run", "--runs-dir", str(self.trap.home / "runs"), *argv,
            env=self.env, cwd=self.tmp_path, address_mib=address_mib,
        )  # fmt: skip
        assert "Traceback" not in done.err
        assert done.seconds < SOON
        for character in "\x1b\x07\x9b":
            assert character not in done.out + done.err, argv
        return done


@pytest.fixture
def store(trap: Trap, tmp_path: Path) -> Store:
    return Store(trap, tmp_path)


COMMANDS = (
    ("list",), ("list", "--format", "json"), ("show", "last"), ("show", "last", "--format", "json"),
    ("export", "last"), ("export", "last", "--steps"), ("export", "last", "--format", "json"),
    ("diff", "last", "last"), ("show", "last", "--format", "html", "-o", "page.html"),
    ("show", "last", "--bundle", "send.tar.gz"),
)  # fmt: skip


def test_words_of_a_run_steer_neither_terminal_nor_browser(store: Store) -> None:
    store.record()
    store.record(NAME + ESCAPE.replace("/", "") + "<b>")
    for argv in COMMANDS:
        assert store(*argv).status == 0, argv
    page = (store.tmp_path / "page.html").read_text()
    assert "<script>alert" not in page
    assert "<img src" not in page


def test_traps_beside_a_record_do_not_stop_or_leak(store: Store) -> None:
    store.record()
    for name in ("samples.jsonl", "steps.jsonl.fifo", "output.log.gz"):
        os.mkfifo(store.run / name)
        store.trap.give(store.run / name)
    for name in ("samples.jsonl.1", "steps.jsonl", "snapshot.json", "shadow.txt"):
        store.trap.link(f"runs/{NAME}/{name}")
    (store.run / "device").symlink_to("/dev/zero")
    for argv in COMMANDS:
        done = store(*argv)
        assert done.status == 0, (argv, done.err)
        assert "root's own" not in done.out
    with tarfile.open(store.tmp_path / "send.tar.gz") as archive:
        texts = {one.name: archive.extractfile(one) for one in archive}
        read = {name: file.read().decode() for name, file in texts.items() if file is not None}
    assert not any("root's own" in text for text in read.values())
    assert "output.log.gz: " in read[f"{NAME}/left-out.txt"]


@pytest.mark.parametrize("kind", ["fifo", "link", "device", "bomb"])
def test_a_record_that_is_a_trap(store: Store, kind: str) -> None:
    path = store.run / "run.json"
    store.trap.file(f"runs/{NAME}/other", "x")
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "link":
        path.symlink_to(store.trap.victim)
        store.trap.give(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    else:
        path.touch()
        os.truncate(path, 1 << 40)
    assert store("list").status == 0
    done = store("show", str(store.run))
    assert done.status == 2
    assert len(done.err.splitlines()) == 1
    assert "root's own" not in done.err


@pytest.mark.parametrize(
    "more",
    [
        pytest.param({"pid": 2**63, "status": None}, id="a process number beyond 63 bits"),
        pytest.param({"pid": -1, "status": None}, id="a negative process number"),
        pytest.param({"seconds": 1e300}, id="seconds without end"),
        pytest.param({"status": -(2**40)}, id="a status beyond 32 bits"),
        pytest.param({"started": "0001-01-01T00:00:00"}, id="the year 1"),
        pytest.param(
            {"figures": {"throttled_seconds": {"0": 1e300}}}, id="a throttled GPU without end"
        ),
    ],
)
def test_numbers_of_a_record_that_no_run_has(store: Store, more: dict[str, object]) -> None:
    import platform

    store.record(NAME, **{"host": platform.node(), **more})
    for argv in (("list",), ("show", str(store.run)), ("export", str(store.run))):
        assert store(*argv).status in (0, 2)


def test_samples_and_steps_that_no_run_writes(store: Store) -> None:
    lines = [
        "[" * 100_000,
        '{"t": ' + "9" * 6000 + "}",
        '{"t": 1e400, "loss": 1e400, "step": "x"}',
        '{"t": "1", "host": 3}',
        '{"t": 1, "gpus": [{"index": "\\u001b[2J"}], "ranks": 7}',
        '{"t": 2, "host": {"\\u001b]52;c;aGk=\\u0007": "=cmd()", "used": 5}}',
        "{}", "null", '{"t": 3, "loss": NaN, "\\u009b31m": 4}',
    ]  # fmt: skip
    store.record()
    store.trap.file(f"runs/{NAME}/samples.jsonl", "\n".join(lines))
    store.trap.file(f"runs/{NAME}/steps.jsonl", "\n".join(lines))
    for argv in COMMANDS:
        done = store(*argv)
        assert done.status == 0, (argv, done.err)
        assert "=cmd()" not in done.out
    assert "5" in store("export", "last").out, "what can be read is still exported"


def test_output_that_inflates_to_gigabytes(store: Store) -> None:
    """A bundle contains 32 MiB of one file at most, and dsdoctor does not hold more."""
    store.record()
    path = store.trap.file(f"runs/{NAME}/output-1.log.gz", "")
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(512):
            file.write(b"x" * (1 << 20))
    assert path.stat().st_size < 1 << 20
    (store.run / "broken.log.gz").write_bytes(b"\x1f\x8b\x08" + bytes(7) + b"\xff" * 20)
    done = store("show", "last", "--bundle", "send.tar.gz", address_mib=500)
    assert done.status == 0, done.err
    with tarfile.open(store.tmp_path / "send.tar.gz") as archive:
        names = {Path(one.name).name for one in archive}
        left = archive.extractfile(f"{NAME}/left-out.txt")
        assert left is not None
        said = left.read().decode()
    assert "output-1.log" not in names
    assert "output-1.log.gz: it is larger than 32 MiB" in said
    assert "broken.log.gz: its compressed data is broken" in said


def test_a_tree_without_end_and_many_files(store: Store) -> None:
    store.record()
    here = os.open(store.run, os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    for number in range(4500):
        (store.run / f"f{number:04}.txt").write_text("x")
    assert store("show", "last", "--bundle", "send.tar.gz").status == 0
    with tarfile.open(store.tmp_path / "send.tar.gz") as archive:
        assert len(archive.getmembers()) <= 4097
    files.remove(store.run, tree=True)  # deeper than what `shutil` can remove


# ---- the log of the gate -----------------------------------------------------------------------


def status(folder: Path, tmp_path: Path, *more: str) -> Outcome:
    done = dsdoctor(
        "hook", "status", "--run-folder", str(folder), *more,
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert "Traceback" not in done.err
    assert done.seconds < SOON
    return done


@pytest.mark.parametrize("kind", ["file", "fifo", "link", "device"])
def test_a_gate_log_of_another_account_is_not_believed(
    trap: Trap, tmp_path: Path, kind: str
) -> None:
    line = f"time={int(time.time())} event=end hook=npd run=1 decision=pass seconds=1\n"
    path = trap.home / "gate.log"
    if kind == "file":
        trap.file("gate.log", line)
    elif kind == "fifo":
        os.mkfifo(path)
    else:
        trap.link("gate.log", "/dev/zero" if kind == "device" else None)
    done = status(trap.home, tmp_path)
    assert done.status == 2, done.out
    assert len(done.err.splitlines()) == 1
    assert str(trap.home) in done.err
    assert "1 passed" not in done.out


def test_a_gate_log_that_is_broken_or_hostile(trap: Trap, tmp_path: Path) -> None:
    folder = trap.folder / "gate"
    folder.mkdir(mode=0o755)
    now = int(time.time())
    good = f"time={now} event=end hook=npd node=n1 run=1 decision=pass seconds=0.5\n"
    rows = [
        f'time={now} event=end hook=npd{ESCAPE} node=n"}}\\ run=2 cause={ESCAPE} seconds=1e300',
        "time=1e300 event=end hook=npd run=3 decision=pass",
        "time=nan event=end hook=npd run=4",
        "time=" + "9" * 6000 + " hook=npd run=5",
        f"time={now} event=end hook=npd node={'x' * 100_000} run=6 decision=block",
        "hook= time=", "====", "\x00\xff\udcff",
    ]  # fmt: skip
    (folder / "gate.log").write_bytes(
        "".join(f"{row}\n" for row in rows).encode("utf-8", "surrogateescape") + good.encode()
    )
    for form in ("text", "json", "prometheus"):
        done = status(folder, tmp_path, "--format", form)
        assert done.status == 0, done.err
        for character in "\x1b\x07\x9b":
            assert character not in done.out
        assert "x" * 1000 not in done.out
        if form == "text":
            assert "n1 · npd" in done.out
        if form == "json":
            json.loads(done.out)
        if form == "prometheus":
            values = [line for line in done.out.splitlines() if line[0] != "#"]
            assert all(re.fullmatch(r'\w+\{(\w+="[^"\\]*",?)+\} [\d.]+', line) for line in values)


def test_a_gate_log_that_nothing_rotated(trap: Trap, tmp_path: Path) -> None:
    folder = trap.folder / "gate"
    folder.mkdir(mode=0o755)
    with (folder / "gate.log").open("wb") as file:
        file.truncate(8 << 30)
        file.seek(0, os.SEEK_END)
        file.write(
            f"\ntime={int(time.time())} event=end hook=npd run=1 decision=pass seconds=1\n".encode()
        )
    assert "1 ran: 1 passed" in status(folder, tmp_path).out


# ---- the last known good state -----------------------------------------------------------------


@pytest.mark.parametrize("kind", ["file", "link", "fifo"])
def test_a_known_good_state_of_another_account(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """Root with a kept XDG_STATE_HOME neither believes it nor writes there."""
    from dsdoctor.machines import known_good
    from dsdoctor.model.snapshot import from_json
    from tests.run.test_known_good import snapshot as machine

    monkeypatch.setenv("XDG_STATE_HOME", str(trap.home))
    snapshot = machine()
    place = known_good._place(snapshot)
    trap.file(str(place.relative_to(trap.home)), snapshot.to_json().decode())
    assert from_json(place.read_bytes(), "x")
    if kind != "file":
        place.unlink()
    if kind == "link":
        trap.link(str(place.relative_to(trap.home)))
    if kind == "fifo":
        os.mkfifo(place)
    before = place.lstat()
    assert known_good.last(snapshot) is None
    known_good.remember(snapshot)
    assert place.lstat().st_ino == before.st_ino
