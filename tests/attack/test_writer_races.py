"""The one writer against what is exchanged between its look and its use, and what it keeps."""

from __future__ import annotations

import errno
import os
import stat
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import files
from dsdoctor.safe_path import Rules, UnsafePathError, locate
from tests.attack.conftest import MALLORY, Trap


def before_open(monkeypatch: pytest.MonkeyPatch, name: str, act: Callable[[], None]) -> None:
    """Acts between the look at a name and the first open of it."""
    plain, done = os.open, [False]

    def opened(path: Any, *words: Any, **more: Any) -> int:
        if path == name and not done[0]:
            done[0] = True
            act()
        return plain(path, *words, **more)

    monkeypatch.setattr(os, "open", opened)


def test_a_name_that_was_guessed_all_the_same(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    trap.link(".planted")
    monkeypatch.setattr(files, "_fresh_name", lambda _: ".planted")
    with pytest.raises(FileExistsError):
        files.write(trap.home / "report", "x")


def test_a_link_that_comes_after_the_removal(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    (trap.home / "log").write_text("")

    def plant() -> None:
        trap.link("log")

    before_open(monkeypatch, "log", plant)
    with pytest.raises(FileExistsError):
        files.open_new(trap.home / "log")


@pytest.mark.parametrize("opened", [files.open_append, files.open_lock])
@pytest.mark.parametrize("how", ["hard link", "fifo", "link"])
def test_a_file_that_was_exchanged_before_it_is_opened(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, how: str, opened: Callable[[Path], int]
) -> None:
    log = trap.folder / "log"
    log.write_text("")

    def exchange() -> None:
        log.unlink()
        if how == "hard link":
            log.hardlink_to(trap.victim)
        elif how == "link":
            log.symlink_to(trap.victim)
        else:
            os.mkfifo(log)

    before_open(monkeypatch, "log", exchange)
    with pytest.raises(OSError, match=r"hard links|levels of symbolic links|not a regular|No such"):
        os.close(opened(log))


def test_a_device_that_was_exchanged_before_it_is_opened(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    device = trap.folder / "device"
    os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))

    def exchange() -> None:
        device.unlink()
        device.hardlink_to(trap.victim)

    before_open(monkeypatch, "device", exchange)
    with pytest.raises(UnsafePathError, match="was replaced"):
        files.write(device, "x")


@pytest.mark.parametrize("how", ["hard link", "link"])
def test_a_file_that_cannot_be_replaced_is_judged_once_more(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    """A mount point is written to in place."""
    place = trap.folder / "mounted"
    place.write_text("before")

    def refused(*_: object, **__: object) -> None:
        place.unlink()
        place.hardlink_to(trap.victim) if how == "hard link" else place.symlink_to(trap.victim)
        raise OSError(errno.EXDEV, "a mount point")

    monkeypatch.setattr(files, "_replace", refused)
    with pytest.raises(OSError, match=r"hard links|levels of symbolic links"):
        files.write(place, "x")


def test_a_file_of_another_account_in_a_folder_of_root(trap: Trap) -> None:
    theirs = trap.folder / "theirs"
    theirs.write_text("theirs")
    os.chown(theirs, MALLORY, MALLORY)
    for strict in (True, False):
        with pytest.raises(UnsafePathError, match="belongs to uid 61234"):
            files.append(theirs, b"x", strict=strict)
    with pytest.raises(UnsafePathError, match="belongs to uid 61234"):
        files.read(theirs, strict=True)
    os.chown(theirs, 0, 0)
    theirs.chmod(0o666)
    with pytest.raises(UnsafePathError, match="can be written by others"):
        files.read(theirs, strict=True)
    assert files.read(theirs) == b"theirs"


def test_neither_rights_nor_mode_of_another_accounts_file_are_kept(trap: Trap) -> None:
    """Its owner stays, as with `> FILE`; its bits would open what root writes."""
    path = trap.file("report", "old", 0o777)
    files.write(path, "new")
    info = path.stat()
    assert (info.st_uid, stat.S_IMODE(info.st_mode) & 0o022) == (MALLORY, 0)
    own = trap.folder / "own"
    own.write_text("old")
    own.chmod(0o6755)
    files.write(own, "new")
    assert stat.S_IMODE(own.stat().st_mode) == 0o755


@pytest.mark.any_user
def test_what_is_private_is_private_from_its_first_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[int] = []
    plain = files._pour

    def pour(handle: int, content: bytes, path: str) -> None:
        seen.append(os.fstat(handle).st_mode & 0o077)
        plain(handle, content, path)

    monkeypatch.setattr(files, "_pour", pour)
    before = os.umask(0)
    try:
        files.write(tmp_path / "key", "x", mode=0o600)
    finally:
        os.umask(before)
    assert seen == [0]


@pytest.mark.parametrize("kind", ["fifo", "device"])
def test_what_is_read_is_judged_before_and_after_it_is_opened(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    def planted(path: Path) -> None:
        if kind == "fifo":
            os.mkfifo(path)
        else:
            os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))

    felt: list[str] = []
    planted(trap.folder / "first")
    with monkeypatch.context() as patch:
        before_open(patch, "first", lambda: felt.append("opened"))
        with pytest.raises(UnsafePathError, match="not a regular file"):
            files.open_read(trap.folder / "first")
    assert felt == [], "an open alone can do something to a device"
    late = trap.folder / "late"
    late.write_text("")

    def exchange() -> None:
        late.unlink()
        planted(late)

    before_open(monkeypatch, "late", exchange)
    with pytest.raises(UnsafePathError, match="not a regular file"):
        files.open_read(late)


def test_a_link_in_a_sticky_folder_is_followed_by_its_owner_alone(trap: Trap) -> None:
    """What Linux does with `fs.protected_symlinks`, for who is not root."""
    shared = trap.folder / "shared"
    shared.mkdir()
    shared.chmod(0o1777)
    link = shared / "link"
    link.symlink_to(trap.victim)
    os.lchown(link, MALLORY, MALLORY)
    other = Rules(frozenset({0, MALLORY + 1}), strict=False, root=False)
    with pytest.raises(UnsafePathError, match="is a link of uid 61234"), locate(link, other):
        pass
    own = Rules(frozenset({0, MALLORY}), strict=False, root=False)
    with locate(link, own) as place:
        assert place.name == "victim"


def test_scratch_folders_are_not_made_where_another_account_rules(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(trap.home))
    made = files.scratch_folder("dsdoctor-attack-scratch-")
    try:
        assert made.parent == Path("/tmp")
        assert stat.S_IMODE(made.stat().st_mode) == 0o700
    finally:
        files.remove(made, tree=True)
