"""The one writer: links, devices, FIFOs, races, and the folders of others."""

from __future__ import annotations

import os
import signal
import stat
import threading
import time
from pathlib import Path

import pytest

from dsdoctor import files
from dsdoctor.safe_path import UnsafePathError, why_untrusted
from tests.attack.conftest import MALLORY, Trap


@pytest.mark.parametrize("strict", [True, False])
def test_a_link_at_the_end_is_never_written_through(trap: Trap, strict: bool) -> None:
    for name in ("report", "report2"):
        trap.link(name)
    with pytest.raises(UnsafePathError, match="belongs to" if strict else "is a link of"):
        files.write(trap.home / "report", "x", strict=strict)
    if not strict:
        files.write(trap.home / "report2", "x", follow=False)
        assert (trap.home / "report2").read_text() == "x"
        assert not (trap.home / "report2").is_symlink()


def test_a_link_on_the_way_is_not_followed(trap: Trap) -> None:
    (trap.folder / "etc").mkdir()
    trap.link("out", trap.folder / "etc")
    with pytest.raises(UnsafePathError, match=r"out` is a link of uid 61234"):
        files.write(trap.home / "out" / "report", "x")
    with pytest.raises(UnsafePathError):
        files.make_folder(trap.home / "out" / "new")
    assert list((trap.folder / "etc").iterdir()) == []


def test_strict_refuses_every_parent_of_somebody_else(trap: Trap) -> None:
    inner = trap.home / "a" / "b"
    inner.mkdir(parents=True)  # root's own, below a folder that is not
    with pytest.raises(UnsafePathError, match=rf"`{trap.home}` belongs to uid 61234, not to root"):
        files.write(inner / "f", "x", strict=True)
    files.write(inner / "f", "x")  # named on the command line, and no link on the way


def test_strict_refuses_what_others_can_write_but_not_a_sticky_folder(trap: Trap) -> None:
    shared = trap.folder / "shared"
    shared.mkdir()
    shared.chmod(0o777)
    with pytest.raises(UnsafePathError, match="can be written by others"):
        files.write(shared / "f", "x", strict=True)
    shared.chmod(0o1777)
    files.write(shared / "f", "x", strict=True)
    assert (shared / "f").read_text() == "x"
    planted = shared / "g"
    planted.symlink_to(trap.victim)
    os.lchown(planted, MALLORY, MALLORY)
    with pytest.raises(UnsafePathError, match="is a link of"):
        files.write(planted, "x", strict=True)


def test_names_that_can_be_guessed_are_not_used(trap: Trap) -> None:
    """The names of earlier versions, all planted: none of them is touched."""
    for number in range(os.getpid(), os.getpid() + 3):
        trap.link(f".report.{number}")
    trap.link("..report.dsdoctor-new")
    trap.link(".report.new")
    files.write(trap.home / "report", "x")
    assert (trap.home / "report").read_text() == "x"
    left = {p.name for p in trap.home.iterdir() if not p.is_symlink()}
    assert left == {"report"}, "a temporary file stays behind"


def test_a_device_stays_a_device(trap: Trap) -> None:
    null = trap.folder / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    files.write(null, "x", strict=True)
    assert stat.S_ISCHR(null.stat().st_mode)
    full = trap.folder / "full"
    os.mknod(full, stat.S_IFCHR | 0o666, os.makedev(1, 7))
    with pytest.raises(OSError, match="No space left"):
        files.write(full, "x", strict=True)
    disk = trap.folder / "disk"
    os.mknod(disk, stat.S_IFBLK | 0o600, os.makedev(7, 250))
    with pytest.raises(UnsafePathError, match="block device"):
        files.write(disk, "x")


def test_a_fifo_is_written_to_and_never_waited_for(trap: Trap) -> None:
    fifo = trap.folder / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(OSError, match="no process reads it"):
        files.write(fifo, "x", strict=True)
    heard: list[str] = []
    reader = threading.Thread(target=lambda: heard.append(fifo.read_text()))
    reader.start()
    for _ in range(10_000):  # until the reader has opened it
        try:
            files.write(fifo, "all of it" * 20000, strict=True)
            break
        except OSError:
            time.sleep(0.01)
    reader.join(100)
    assert heard == ["all of it" * 20000]
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    os.mkfifo(trap.home / "theirs")
    trap.give(trap.home / "theirs")
    with pytest.raises(UnsafePathError, match="belongs to"):
        files.write(trap.home / "theirs", "x")


@pytest.mark.any_user
def test_a_descriptor_of_ours_is_written_to(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    try:
        files.write(f"/dev/fd/{writer}", "through the pipe")
        assert os.read(reader, 100) == b"through the pipe"
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.any_user
def test_mode_and_content_of_plain_files(tmp_path: Path) -> None:
    path = tmp_path / "f"
    files.write(path, "1", mode=0o640)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    files.write(path, "2")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("2", 0o640)
    link = tmp_path / "link"
    link.symlink_to("f")
    files.write(link, "3")  # a link of one's own is followed
    assert (link.is_symlink(), path.read_text()) == (True, "3")
    files.write(link, "4", follow=False)
    assert (link.is_symlink(), path.read_text(), link.read_text()) == (False, "3", "4")
    files.write(tmp_path / "a" / "b" / "c", "5", make=0o755)
    assert (tmp_path / "a" / "b" / "c").read_text() == "5"
    with pytest.raises(IsADirectoryError):
        files.write(tmp_path, "x")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a", "f", "link"]


def test_a_hard_link_is_not_appended_to(trap: Trap) -> None:
    os.link(trap.victim, trap.folder / "log")
    with pytest.raises(UnsafePathError, match="hard links"):
        files.append(trap.folder / "log", b"x", strict=True)
    (trap.folder / "log").unlink()
    trap.link("log")
    with pytest.raises(UnsafePathError):
        files.append(trap.home / "log", b"x")


def test_a_tree_is_removed_and_nothing_that_it_links_to(trap: Trap) -> None:
    keep = trap.folder / "keep"
    keep.mkdir()
    (keep / "f").write_text("")
    tree = trap.folder / "tree"
    deep = tree
    for _ in range(600):
        deep /= "d"
    os.makedirs(deep)
    (tree / "out").symlink_to(keep)
    files.remove(tree, tree=True)
    assert not tree.exists()
    assert (keep / "f").exists()


def test_a_folder_that_is_exchanged_for_a_link_all_the_time(trap: Trap) -> None:
    """A race: `out` is now a folder of the attacker's, now a link to root's own."""
    target = trap.folder / "etc"
    target.mkdir()
    os.chown(trap.home, MALLORY, MALLORY)
    child = os.fork()
    if child == 0:  # the attacker
        try:
            os.setgroups([])
            os.setgid(MALLORY)
            os.setuid(MALLORY)
            os.chdir(trap.home)
            os.mkdir("real")
            os.symlink(target, "bait")
            while True:
                os.rename("real", "out")
                os.rename("out", "real")
                os.rename("bait", "out")
                os.rename("out", "bait")
        finally:
            os._exit(1)
    written = refused = 0
    try:
        begun = time.monotonic()
        while (spent := time.monotonic() - begun) < 60 and (
            spent < 2 or not written or not refused
        ):
            try:
                files.write(trap.home / "out" / "report", "x")
                written += 1
            except OSError:
                refused += 1
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    assert list(target.iterdir()) == []
    assert written, "the race was never lost by the attacker: nothing was tried"
    assert refused


def test_what_root_may_run_is_judged_to_the_root(trap: Trap) -> None:
    tool = trap.folder / "tool"
    tool.write_text("")
    assert why_untrusted(tool) == ""
    tool.chmod(0o775)
    assert "can be written by others (mode 775)" in why_untrusted(tool)
    tool.chmod(0o755)
    assert "belongs to uid 61234" in why_untrusted(trap.file("tool", ""))
    link = trap.folder / "link"
    link.symlink_to(trap.home / "tool")
    assert "belongs to uid 61234" in why_untrusted(link)
    link.unlink()
    link.symlink_to(tool)
    assert why_untrusted(link) == ""
    os.lchown(link, MALLORY, MALLORY)
    assert "is a link of uid 61234" in why_untrusted(link)
    assert "does not exist" in why_untrusted(trap.folder / "none")


def test_root_reads_regular_files_alone(trap: Trap) -> None:
    fifo = trap.home / "fifo"
    os.mkfifo(fifo)
    for path in (fifo, Path("/dev/zero")):
        with pytest.raises(UnsafePathError, match="not a regular file"):
            files.read(path)
    with pytest.raises(OSError, match="more than 10 bytes"):
        files.read(trap.file("long", "x" * 11), limit=10)
    with pytest.raises(UnsafePathError, match="belongs to"):
        files.read(trap.file("config.toml", "x"), strict=True)
    with pytest.raises(UnsafePathError, match="is a link of"):
        files.read(trap.link("shadow"))
