"""What smoke removes: what this user owns and this run made, whatever lies beside it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.smoke import evidence, launcher
from dsdoctor.smoke.run import interruptible

ELSEWHERE = 9_999_999
SOMEBODY = 54_321
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="needs root, to make files of another user"
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    monkeypatch.chdir(folder)
    return folder


@pytest.fixture
def shm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "shm"
    folder.mkdir()
    monkeypatch.setattr(evidence, "SHM", folder)
    return folder


def stale(temporary: Path, name: str = "abc") -> Path:
    folder = temporary / f"{launcher.PREFIX}{ELSEWHERE}-{name}"
    folder.mkdir()
    (folder / "alive").touch()
    return folder


def test_a_pipe_as_note_of_the_port_does_not_hang(temporary: Path, shm: Path) -> None:
    folder = stale(temporary)
    os.mkfifo(folder / "port")
    launcher.remove_stale()
    assert not folder.exists()
    folder = stale(temporary)
    (folder / "alive").unlink()
    os.mkfifo(folder / "alive")
    launcher.remove_stale()
    assert not folder.exists()


@pytest.mark.parametrize("target", ["/dev/zero", "/etc/hostname"])
def test_a_link_as_note_of_the_port_is_not_followed(
    temporary: Path, shm: Path, target: str
) -> None:
    folder = stale(temporary)
    (folder / "port").symlink_to(target)
    launcher.remove_stale()
    assert not folder.exists()
    assert Path(target).exists()


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("9" * 6000, id="6,000 digits"),
        pytest.param("-1", id="a negative number"),
        pytest.param("29500_29501", id="an underscore between digits"),
        pytest.param("é", id="a letter"),
        pytest.param("", id="nothing"),
    ],
)
def test_a_wrong_note_of_the_port_sweeps_nothing(temporary: Path, shm: Path, text: str) -> None:
    uid = os.getuid()
    kept = shm / f"deepspeed_allreduce_buffer_{uid}_127.0.0.1_29500_0"
    kept.touch()
    folder = stale(temporary)
    (folder / "port").write_text(text)
    launcher.remove_stale()
    assert not folder.exists()
    assert kept.exists()


def test_a_link_to_a_folder_is_left_alone(temporary: Path, shm: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "port").write_text("29500")
    (victim / "alive").touch()
    (temporary / f"{launcher.PREFIX}{ELSEWHERE}-x").symlink_to(victim)
    launcher.remove_stale()
    assert (victim / "port").exists()


@needs_root
def test_folders_of_another_user_are_left_alone(temporary: Path, shm: Path) -> None:
    folder = stale(temporary)
    (folder / "port").write_text("29500")
    buffer = shm / "deepspeed_allreduce_buffer_0_127.0.0.1_29500_0"
    buffer.touch()
    os.chown(folder, SOMEBODY, SOMEBODY)
    launcher.remove_stale()
    assert folder.exists()
    assert buffer.exists()


@needs_root
def test_a_note_of_another_user_in_our_folder_is_not_read(temporary: Path, shm: Path) -> None:
    folder = stale(temporary)
    (folder / "port").write_text("29500")
    os.chown(folder / "port", SOMEBODY, SOMEBODY)
    buffer = shm / "deepspeed_allreduce_buffer_0_127.0.0.1_29500_0"
    buffer.touch()
    launcher.remove_stale()
    assert buffer.exists()


def test_segments_of_this_run_only(shm: Path) -> None:
    uid = os.getuid()
    ours = ("nccl-ours01", "torch_77_ours", f"deepspeed_allreduce_buffer_{uid}_h_29777_0")
    others = (
        "nccl-of-another-job", "torch_88_other", "sem.mine", "psm_1",
        f"deepspeed_allreduce_buffer_{uid}_h_29500_0", f"deepspeed_allreduce_buffer_{uid + 1}_h_29777_0",
    )  # fmt: skip
    before = frozenset({"nccl-before"})
    for name in (*ours, *others, *before):
        (shm / name).touch()
    left = evidence.sweep_shared_memory(
        {"nccl-ours01", "torch_77_ours", "nccl-before"}, before, 29777
    )
    assert left == ()
    assert {path.name for path in shm.iterdir()} == {*others, *before}


@needs_root
def test_a_segment_of_another_user_stays(shm: Path) -> None:
    for name in ("nccl-x", "deepspeed_allreduce_buffer_0_h_29777_0"):
        (shm / name).touch()
        os.chown(shm / name, SOMEBODY, SOMEBODY)
    evidence.sweep_shared_memory({"nccl-x"}, frozenset(), 29777)
    assert len(list(shm.iterdir())) == 2


def test_what_a_rank_has_mapped_is_seen() -> None:
    name = f"torch_dsdoctor_test_{os.getpid()}"
    code = (
        "import mmap, sys\n"
        f"file = open('/dev/shm/{name}', 'wb+')\n"
        "file.truncate(4096)\n"
        "held = mmap.mmap(file.fileno(), 4096)\n"
        "print('held', flush=True)\n"
        "sys.stdin.read()\n"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert evidence.segments_of([child.pid]) == {name}
        # a process has it: it is not removed
        evidence.sweep_shared_memory({name}, frozenset(), 1)
        assert (evidence.SHM / name).exists()
    finally:
        child.kill()
        child.communicate()
    evidence.sweep_shared_memory({name}, frozenset(), 1)
    assert not (evidence.SHM / name).exists()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_a_run_so_that_it_can_clean_up(number: signal.Signals) -> None:
    with interruptible() as seen:
        try:
            os.kill(os.getpid(), number)
            signal.sigtimedwait([], 5)
        except KeyboardInterrupt:
            pass
    assert seen.number == number


def test_a_hang_up_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with interruptible() as seen:
            os.kill(os.getpid(), signal.SIGHUP)
        assert seen.number == 0
    finally:
        signal.signal(signal.SIGHUP, before)
