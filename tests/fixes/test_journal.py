"""Undo brings everything back byte for byte, from any point."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dsdoctor.errors import UsageError
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes.apply import Applier, StepError
from dsdoctor.fixes.undo import UndoError, undo
from dsdoctor.model.fix_plan import Env, Link, LinkNames, LinkTree, Plan, Remove, Run, Step, Write
from tests.support.command import clean_environment, dsdoctor
from tests.support.patient import tree

NAMES = st.sampled_from(["a", "b", "d/a", "d/e/f", "lib/libx.so", "lib/liby.so.1", "g/h"])
STEPS = st.one_of(
    st.builds(
        lambda p, c, m: ("write", p, c, m),
        NAMES,
        st.text(max_size=20),
        st.sampled_from([None, 0o600, 0o755]),
    ),
    st.builds(lambda p, t: ("link", p, t), NAMES, st.sampled_from(["a", "../x", "/nowhere"])),
    st.builds(lambda p: ("remove", p), st.sampled_from(["a", "d", "d/e", "lib", "g/h"])),
    st.builds(lambda p, s: ("tree", p, s), st.sampled_from(["lib", "new"]), st.just("d")),
    st.builds(lambda p: ("names", p), st.just("lib")),
    st.just(("env",)),
)
BEFORE = st.dictionaries(
    NAMES,
    st.tuples(
        st.sampled_from(["file", "link"]), st.binary(max_size=20), st.sampled_from([0o644, 0o640])
    ),
    max_size=5,
)


def step_of(root: Path, row: tuple[object, ...]) -> Step:
    kind, *rest = row
    place = str(root / str(rest[0])) if rest else ""
    if kind == "write":
        return Write(write=place, content=str(rest[1]), mode=rest[2], why="w")  # type: ignore[arg-type]
    if kind == "link":
        return Link(link=place, target=str(rest[1]), why="l")
    if kind == "remove":
        return Remove(remove=place, why="r")
    if kind == "tree":
        return LinkTree(link=place, source=str(root / str(rest[1])), why="t")
    if kind == "names":
        return LinkNames(link=place, why="n")
    return Env(env={"A": "1"}, why="e")


def cut_off_after(count: int) -> Callable[[str], None]:
    left = iter(range(count))

    def say(_text: str) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    return say


def lay_out(root: Path, before: dict[str, tuple[str, bytes, int]]) -> None:
    for name, (kind, content, mode) in before.items():
        path = root / name
        with contextlib.suppress(OSError):  # a name that another one needs as its folder
            path.parent.mkdir(parents=True, exist_ok=True)
            if kind == "link":
                path.symlink_to("a")
            else:
                path.write_bytes(content)
                path.chmod(mode)


class Crash(BaseException):
    """Stands for a power cut: nothing that comes after it is done."""


class CrashingJournal(journals.Journal):
    """Ends the world before or after a note of it reaches the disk."""

    notes_left = 1 << 30
    torn = False

    def note(self, op: str, **fields: Any) -> None:
        self.notes_left -= 1
        if self.notes_left < 0 and self.torn:
            raise Crash
        super().note(op, **fields)
        if self.notes_left < 0:
            raise Crash


@settings(max_examples=200, deadline=None)
@given(
    BEFORE,
    st.lists(STEPS, max_size=7),
    st.integers(0, 6),
    st.one_of(st.none(), st.tuples(st.integers(0, 12), st.booleans())),
)
def test_files_environment_and_links_undo_byte_for_byte(
    before: dict[str, tuple[str, bytes, int]],
    rows: list[tuple[object, ...]],
    cut: int,
    crash: tuple[int, bool] | None,
) -> None:
    top = Path(tempfile.mkdtemp())
    try:
        root = top / "r"
        root.mkdir()
        lay_out(root, before)
        was = tree(root)
        times = {n: (root / n).lstat().st_mtime_ns for n, v in was.items() if v[0] == "file"}
        plan = Plan(name="p", title="t", steps=tuple(step_of(root, row) for row in rows))
        book = CrashingJournal.begin("p", {}, top / "state")
        assert isinstance(book, CrashingJournal)
        if crash is not None:
            book.notes_left, book.torn = crash
        with contextlib.suppress(StepError, Crash):  # a plan may end half-way
            Applier(plan, book, {}, lambda _: None).carry_out()
        with contextlib.suppress(KeyboardInterrupt):
            undo(book, {}, cut_off_after(cut))
        if book.path.exists():  # the undo was cut off, and is run again
            undo(book, {}, lambda _: None)
        assert tree(root) == was
        assert {n: (root / n).lstat().st_mtime_ns for n in times} == times
    finally:
        shutil.rmtree(top)


def applied(tmp_path: Path, *steps: Step, creates: tuple[str, ...] = ()) -> journals.Journal:
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    plan = Plan(name="p", title="t", steps=steps, creates=creates)
    Applier(plan, book, dict(os.environ), lambda _: None).carry_out()
    return book


def test_a_later_edit_of_the_user_is_kept(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old\n")
    book = applied(tmp_path, Write(write=str(file), content="new\n", why="w"))
    file.write_text("mine\n")
    said: list[str] = []
    undo(book, {}, said.append)
    assert file.read_text() == "old\n"
    assert (tmp_path / "f.before-undo").read_text() == "mine\n"
    assert any("was changed since" in line for line in said)


def test_a_made_folder_goes_whole(tmp_path: Path) -> None:
    made = tmp_path / "opt" / "dsdoctor" / "cuda"
    run = Run(argv=("mkdir", "-p", str(made / "bin")), why="r", creates=str(made))
    book = applied(tmp_path, run, creates=(str(made),))
    assert made.is_dir()
    undo(book, {}, lambda _: None)
    assert not (tmp_path / "opt").exists()


def test_a_folder_that_was_there_stays(tmp_path: Path) -> None:
    made = tmp_path / "cuda"
    made.mkdir()
    (made / "mine").write_text("x")
    book = applied(
        tmp_path, Link(link=str(made / "l"), target="mine", why="l"), creates=(str(made),)
    )
    undo(book, {}, lambda _: None)
    assert sorted(path.name for path in made.iterdir()) == ["mine"]


def test_a_journal_cut_off_in_a_line_still_undoes(tmp_path: Path) -> None:
    file = tmp_path / "f"
    book = applied(tmp_path, Write(write=str(file), content="new\n", why="w"))
    with book.path.open("ab") as handle:
        handle.write(b'{"op": "restore", "path": "/et')
    undo(book, {}, lambda _: None)
    assert not file.exists()


def test_what_cannot_be_put_back_is_told_and_the_journal_stays(tmp_path: Path) -> None:
    file = tmp_path / "f"
    file.write_text("old")
    book = applied(tmp_path, Write(write=str(file), content="new\n", why="w"))
    shutil.rmtree(book.backups)
    with pytest.raises(UndoError):
        undo(book, {}, lambda _: None)
    assert book.path.is_file()


def test_only_one_at_a_time(tmp_path: Path) -> None:
    with (
        journals.only_one(tmp_path / "s"),
        pytest.raises(UsageError, match="another `dsdoctor fix`"),
        journals.only_one(tmp_path / "s"),
    ):
        pass
    with journals.only_one(tmp_path / "s"):
        pass


def test_another_user_in_the_same_environment_is_kept_out(tmp_path: Path) -> None:
    env = tmp_path / "env"
    env.mkdir()
    with (
        journals.only_one(tmp_path / "s1", env),
        pytest.raises(UsageError, match="env"),
        journals.only_one(tmp_path / "s2", env),
    ):
        pass


def test_a_lock_that_a_live_process_holds_open_is_left_alone(tmp_path: Path) -> None:
    """torch's own lock, taken by a Python that runs no compiler at the moment."""
    folder, alias = tmp_path / "op", tmp_path / "alias"
    folder.mkdir()
    alias.symlink_to(folder)
    lock = folder / "lock"
    code = (
        "import os, sys; os.open(sys.argv[1], os.O_CREAT | os.O_EXCL); print(flush=True); input()"
    )
    child = subprocess.Popen(
        [sys.executable, "-c", code, str(lock)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        old = time.time() - 7200
        os.utime(lock, (old, old))
        for place in (folder, alias):
            step = Remove(remove=str(place / "lock"), unless_held=str(place), why="r")
            with pytest.raises(StepError, match=f"process {child.pid} builds there"):
                applied(tmp_path, step)
        env = clean_environment(tmp_path, TORCH_EXTENSIONS_DIR=str(tmp_path))
        checked = dsdoctor(
            "check", "--quick", "--format", "json", "--select", "jit-build-stale-lock", env=env
        )
        assert checked.of("jit-build-stale-lock") == "ok"
        told = dsdoctor("fix", "remove-stale-lock", "--yes", env=env)
        assert (told.status, "nothing to do" in told.err) == (0, True)
    finally:
        child.communicate(b"\n", timeout=200)
    assert lock.exists()
    checked = dsdoctor(
        "check", "--quick", "--format", "json", "--select", "jit-build-stale-lock", env=env
    )
    assert checked.of("jit-build-stale-lock") == "fail"


def test_a_condition_that_is_not_judged_any_more_is_not_cured(tmp_path: Path) -> None:
    """`gpu-arch-unsupported` is skipped where there is no GPU: for one that was bad, no proof."""
    plan = Plan(name="p", title="t", steps=(), proves=("gpu-arch-unsupported",))
    book = journals.Journal.begin("p", {}, tmp_path / "state")
    env = clean_environment(tmp_path, CUDA_VISIBLE_DEVICES="")
    applier = Applier(plan, book, env, lambda _: None)
    assert applier.recheck(["--quick"], ()) == []
    (wrong,) = applier.recheck(["--quick"], plan.proves)
    assert wrong.startswith("`gpu-arch-unsupported` is now skipped")


def test_a_held_folder_is_left_alone(tmp_path: Path) -> None:
    folder = tmp_path / "op"
    folder.mkdir()
    (folder / "lock").write_text("")
    fake = tmp_path / "ninja"
    shutil.copy("/bin/sleep", fake)
    child = subprocess.Popen([str(fake), "30"], cwd=folder)
    try:
        with pytest.raises(StepError, match=f"process {child.pid} builds there"):
            applied(
                tmp_path,
                Remove(remove=str(folder / "lock"), unless_held=str(folder), why="r"),
            )
    finally:
        child.kill()
        child.wait()
    assert (folder / "lock").exists()


MAPS = """
import mmap, sys
with open(sys.argv[1], "r+b") as file:
    kept = mmap.mmap(file.fileno(), 0)
print(flush=True)
input()
"""


@pytest.mark.system
def test_a_segment_that_a_process_maps_stays(tmp_path: Path) -> None:
    segment = Path(f"/dev/shm/deepspeed_allreduce_buffer_test_{os.getpid()}_0")
    segment.write_bytes(b"x" * 4096)
    step = Remove(remove=str(segment), segment=True, why="r")
    child = subprocess.Popen(
        [sys.executable, "-c", MAPS, str(segment)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        child.stdout.readline()
        with pytest.raises(StepError, match="a process maps it"):
            applied(tmp_path, step)
        child.communicate(b"\n", timeout=200)
        applied(tmp_path, step)
        assert not segment.exists()
    finally:
        child.kill()
        child.wait()
        segment.unlink(missing_ok=True)


def test_a_full_disk_is_one_line_before_anything_is_changed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("dsdoctor.files.write", full)
    with pytest.raises(UsageError, match=r"cannot be recorded in .*: No space left on device; set"):
        journals.Journal.begin("p", {}, tmp_path / "state")
