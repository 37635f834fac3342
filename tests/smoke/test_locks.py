"""Locks of dead builds: seen before anybody waits for them, and never left by smoke itself."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.model.smoke import Event
from dsdoctor.smoke.launcher import WORKER, release_locks
from dsdoctor.smoke.track import Progress
from dsdoctor.smoke.worker import dsdsmoke_locks as locks
from tests.smoke.conftest import Smoke, marked, wait_for

HOLDER = "import sys, time; f = open(sys.argv[1], 'w'); print('held', flush=True); time.sleep(600)"


@pytest.fixture
def lock(tmp_path: Path) -> Path:
    folder = tmp_path / "fused_adam"
    folder.mkdir()
    return folder / "lock"


@pytest.fixture
def holder(lock: Path) -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(lock)], stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "held\n"
    yield child
    child.kill()
    child.wait()
    child.stdout.close()


def aged(path: Path, seconds: float) -> None:
    path.touch()
    os.utime(path, (time.time() - seconds,) * 2)


def test_an_old_lock_that_nobody_holds_is_stale(lock: Path) -> None:
    aged(lock, locks.UNSEEN_SECONDS + 5)
    assert locks.is_stale(str(lock))
    age = locks.wait_for(str(lock))
    assert age == pytest.approx(locks.UNSEEN_SECONDS + 5, abs=30)


def test_a_lock_with_a_live_holder_is_not(lock: Path, holder: subprocess.Popen[str]) -> None:
    aged(lock, locks.UNSEEN_SECONDS + 5)
    assert locks.holders(str(lock)) == [holder.pid]
    assert not locks.is_stale(str(lock))
    holder.kill()
    holder.wait()
    assert locks.is_stale(str(lock))


@pytest.mark.parametrize("visible", [True, False])
def test_a_young_lock_is_stale_only_where_its_builder_would_be_seen(
    lock: Path, visible: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock.touch()
    monkeypatch.setattr(locks, "all_builders_visible", lambda _: visible)
    assert locks.is_stale(str(lock)) is visible


@pytest.mark.parametrize(
    ("mounts", "space", "visible"),
    [
        ("/dev/sda1 / ext4 rw 0 0", "pid:[4026531836]", True),
        ("/dev/sda1 / ext4 rw 0 0", "pid:[4026532999]", False),
        ("overlay / overlay rw 0 0", "pid:[4026532999]", True),
        ("/dev/sda1 / ext4 rw 0 0\nfs:/x /cache nfs4 rw 0 0", "pid:[4026531836]", False),
    ],
)
def test_builders_of_other_hosts_and_containers_cannot_be_seen(
    mounts: str, space: str, visible: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    table = [line.split()[1:3] for line in mounts.splitlines()]
    kind = next(kind for place, kind in reversed(table) if place in ("/cache", "/"))
    (tmp_path / "lock").touch()
    monkeypatch.setattr(locks, "_mount", lambda _: kind)
    monkeypatch.setattr(os, "readlink", lambda _: space)
    assert locks.all_builders_visible(str(tmp_path / "lock")) is visible


def test_waiting_ends_with_the_build(lock: Path, holder: subprocess.Popen[str]) -> None:
    def end() -> None:
        lock.unlink()
        holder.kill()

    begun = time.monotonic()
    threading.Timer(1.0, end).start()
    assert locks.wait_for(str(lock)) is None
    assert time.monotonic() - begun >= 1.0


def test_only_own_locks_without_a_holder_are_removed(
    lock: Path, holder: subprocess.Popen[str]
) -> None:
    assert not locks.remove_left(str(lock), 0.0)
    holder.kill()
    holder.wait()
    assert not locks.remove_left(str(lock), time.time() + 60)
    assert lock.exists()
    assert locks.remove_left(str(lock), time.time() - 60)
    assert not lock.exists()


def _building(folder: Path, host: str, begun: float, *, ended: bool) -> Progress:
    events = [Event(rank=0, phase="spawn", state="ok", data={"host": host})]
    events.append(
        Event(rank=0, phase="build-ops", state="note", time=begun, data={"folder": str(folder)})
    )
    if ended:
        events.append(Event(rank=0, phase="build-ops", state="ok"))
    return Progress(0, events=events)


@pytest.mark.parametrize(
    ("host", "before", "ended", "kept"),
    [
        ("", 60.0, False, False),
        ("", 60.0, True, True),
        ("elsewhere", 60.0, False, True),
        ("", -60.0, False, True),
    ],
)
def test_what_the_parent_takes_away(
    lock: Path, host: str, before: float, ended: bool, kept: bool
) -> None:
    """Not the lock of a rank that went on, of another host, or from before the rank came."""
    lock.touch()
    here = host or os.uname().nodename
    release_locks([_building(lock.parent, here, time.time() - before, ended=ended)])
    assert lock.exists() is kept


def test_a_lock_of_the_kernel_blocks_nobody_and_is_not_removed(lock: Path) -> None:
    """torch 2.14 and newer lock the file itself; another process may wait for that lock."""
    text = (
        "import sys, types; sys.path.insert(0, sys.argv[1]); import dsdsmoke_locks as locks\n"
        "module = types.ModuleType('torch.utils.cpp_extension'); sys.modules[module.__name__] = module\n"
        "f = open(sys.argv[2], 'w'); blocks = [locks.file_blocks()]; locks.release_own()\n"
        "module.FileBaton = object; blocks.append(locks.file_blocks()); print(blocks)"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(WORKER), str(lock)],
        capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    assert done.stdout == "[False, True]\n"
    assert lock.exists()


def test_a_rank_without_parent_ends_its_compiler_and_gives_its_lock_back(lock: Path) -> None:
    text = (
        "import subprocess, sys; sys.path.insert(0, sys.argv[1]); import dsdsmoke_locks as locks\n"
        "f = open(sys.argv[2], 'w'); child = subprocess.Popen(['sleep', '600'])\n"
        "locks.release_own(); print(child.wait())"
    )
    done = subprocess.run(
        [sys.executable, "-c", text, str(WORKER), str(lock)],
        capture_output=True, text=True, timeout=500, check=True,
    )  # fmt: skip
    assert done.stdout == f"{-signal.SIGKILL}\n"
    assert not lock.exists()


def torch_waits_for_files() -> bool:
    """Whether the installed torch waits until the file `lock` is gone, as it did before 2.14."""
    from torch.utils import cpp_extension

    return hasattr(cpp_extension, "FileBaton")


@pytest.mark.train
def test_a_stale_lock_is_named_at_once(smoke: Smoke) -> None:
    fresh = smoke.folder / "fresh"
    left = fresh / "deepspeed_shm_comm" / "lock"
    left.parent.mkdir(parents=True)
    aged(left, 3600.0)
    smoke.env["TORCH_EXTENSIONS_DIR"] = str(fresh)
    ended = smoke("--cpu", "2")
    if not torch_waits_for_files():
        assert (ended.status, ended.causes) == (0, [])
        return
    assert ended.status == 1
    assert ended.causes == ["jit-build-stale-lock"]
    assert str(left) in ended.report["causes"][0]["message"]
    built = next(phase for phase in ended.report["phases"] if phase["name"] == "build-ops")
    assert built["seconds"] < 200, "the lock was waited for"
    assert left.exists(), "a lock of others is theirs to remove"


@pytest.mark.train
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_ended_while_an_op_compiles_it_leaves_no_lock(smoke: Smoke, number: int) -> None:
    fresh = smoke.folder / "fresh"
    smoke.env["TORCH_EXTENSIONS_DIR"] = str(fresh)
    child = smoke.start("--cpu", "2", "--python", sys.executable, "--format", "json")
    left = fresh / "deepspeed_shm_comm" / "lock"
    wait_for(lambda: left.exists() and any("cc1plus" in line for line in marked(smoke.token)))
    time.sleep(1.0)
    os.kill(child.pid, number)
    out, _ = child.communicate(timeout=500)
    wait_for(lambda: not marked(smoke.token))
    # who removes it ends after the processes that it watches
    wait_for(lambda: left.exists() is not torch_waits_for_files())
    if number == signal.SIGINT:
        phases = {phase["name"]: phase for phase in json.loads(out)["phases"]}
        assert phases["build-ops"]["status"] == "stopped"
        assert phases["build-ops"]["seconds"] >= 1.0
        assert "ShareMemCommBuilder" in phases["build-ops"]["detail"]
    else:
        for folder in smoke.temporary.iterdir():
            assert folder.name.startswith("dsdoctor-smoke-")
        # the next run would sweep what a killed one leaves in the temporary folder
        from dsdoctor.smoke import launcher

        before = os.environ.get("TMPDIR")
        assert before != str(smoke.temporary)
        subprocess.run(
            [sys.executable, "-c", f"from {launcher.__name__} import remove_stale; remove_stale()"],
            env=smoke.env, check=True, timeout=500,
        )  # fmt: skip
