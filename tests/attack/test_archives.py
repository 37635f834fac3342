"""Archives that would write elsewhere, on every Python that is here."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.interpreter import CHILDREN

pytestmark = pytest.mark.any_user

PYTHONS = [
    sys.executable,
    *(
        str(path)
        for path in sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
        if path.parent.parent.name.split(".")[1] in ("8", "9", "10", "12", "13", "14")
    ),
]
Add = Callable[[tarfile.TarFile], None]


def member(name: str, kind: bytes = tarfile.REGTYPE, link: str = "", **more: int) -> Add:
    def add(archive: tarfile.TarFile) -> None:
        info = tarfile.TarInfo(f"top/{name}" if not name.startswith("/") else name)
        info.type = kind
        info.linkname = link
        content = b"pwned" if kind == tarfile.REGTYPE else b""
        info.size = len(content)
        info.mode = more.get("mode", 0o644)
        info.uid = info.gid = more.get("uid", 0)
        archive.addfile(info, io.BytesIO(content))

    return add


def unpack(
    tmp_path: Path, *members: Add, python: str = sys.executable
) -> subprocess.CompletedProcess[str]:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:xz") as archive:
        for add in members:
            add(archive)
    source = tmp_path / "a.tar.xz"
    source.write_bytes(data.getvalue())
    digest = hashlib.sha256(data.getvalue()).hexdigest()
    return subprocess.run(
        [
            *(python, "-I", str(CHILDREN / "fetch.py"), source.as_uri(), digest),
            *(str(tmp_path / "into"), str(len(data.getvalue()))),
        ],
        capture_output=True,
        text=True,
        check=False,
    )


SYM, LNK = tarfile.SYMTYPE, tarfile.LNKTYPE
LEAVES: dict[str, tuple[Add, ...]] = {
    "a name": (member("../../victim"),),
    "an absolute name": (member("/x/../../victim"),),
    "a link": (member("out", SYM, "../.."), member("out/victim")),
    "an absolute link": (member("out", SYM, "/etc"),),
    "a link by way of a link": (
        member("a/b/", tarfile.DIRTYPE),
        member("here", SYM, "a/b"),
        member("out", SYM, "here/../../../victim"),
    ),
    "two links, of which each is harmless": (
        member("d/", tarfile.DIRTYPE),
        member("z", SYM, "d/../.."),
        member("d", SYM, "."),
    ),
    "a link whose meaning a later one changes": (
        member("a/b/", tarfile.DIRTYPE),
        member("d", SYM, "a/b"),
        member("z", SYM, "d/../.."),
        member("d", SYM, "."),
    ),
    "a hard link": (member("out", LNK, "../victim"),),
    "a device": (member("null", tarfile.CHRTYPE),),
    "a path of thousands of folders": (member("d/" * 3000 + "file"),),
    "a FIFO": (member("fifo", tarfile.FIFOTYPE),),
}


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("how", LEAVES)
def test_nothing_leaves_the_folder(tmp_path: Path, how: str, python: str) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    done = unpack(tmp_path, *LEAVES[how], python=python)
    assert done.returncode != 0, done
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert victim.read_text() == "mine"
    into = tmp_path / "into"
    inside = os.path.realpath(into)
    for path in into.rglob("*"):
        assert os.path.realpath(path).startswith(inside), path
        assert not stat.S_ISFIFO(path.lstat().st_mode)


@pytest.mark.parametrize("how", ["two dots in a name", "an absolute link"])
def test_what_stays_inside_in_a_way_that_no_archive_needs(tmp_path: Path, how: str) -> None:
    into = tmp_path / "into"
    dots, link = member("a/../b"), member("lib", SYM, f"{into}/lib64")
    done = unpack(tmp_path, dots if how == "two dots in a name" else link)
    assert done.returncode != 0, done
    assert list(into.iterdir()) == []


@pytest.mark.parametrize("name", ["out/victim", "out/made/", "out/made/file"])
def test_a_link_that_was_there_before_is_not_followed(tmp_path: Path, name: str) -> None:
    """Of an archive that was unpacked by something else, or of the owner of the folder."""
    into = tmp_path / "into"
    into.mkdir()
    (into / "out").symlink_to("..")
    victim = tmp_path / "victim"
    victim.write_text("mine")
    kind = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
    done = unpack(tmp_path, member(name, kind))
    assert done.returncode != 0, done
    assert victim.read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.xz", "into", "victim"]


def functions() -> dict[str, Any]:
    """Those of the script, which runs when it is imported."""
    found: dict[str, Any] = {"__name__": "fetch"}
    text = (CHILDREN / "fetch.py").read_text()
    exec(compile(text.replace("\nmain()\n", "\n"), "fetch.py", "exec"), found)
    return found


@pytest.mark.parametrize("kind", ["a link", "a hard link"])
def test_what_is_planted_between_the_look_and_the_write(tmp_path: Path, kind: str) -> None:
    victim, planted = tmp_path / "victim", tmp_path / "planted"
    victim.write_text("mine")
    planted.symlink_to(victim) if kind == "a link" else planted.hardlink_to(victim)
    with pytest.raises(OSError, match="File exists"):
        functions()["_write"](io.BytesIO(b"pwned"), str(planted), 0o644)
    assert victim.read_text() == "mine"


def fetched(tmp_path: Path, digest: str, size: int) -> subprocess.CompletedProcess[str]:
    source = tmp_path / "a.tar.xz"
    return subprocess.run(
        [
            *(sys.executable, "-I", str(CHILDREN / "fetch.py"), source.as_uri(), digest),
            *(str(tmp_path / "into"), str(size)),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_nothing_of_an_archive_is_kept_that_is_not_the_one_meant(tmp_path: Path) -> None:
    """Neither by its checksum nor by its size, each of which is compared on its own."""
    unpack(tmp_path, member("file"))
    data = (tmp_path / "a.tar.xz").read_bytes()
    (tmp_path / "into" / "file").unlink()
    digest = hashlib.sha256(data).hexdigest()
    for wrong, size, words in (("0" * 64, len(data), "checksum"), (digest, 5, "bytes, but")):
        done = fetched(tmp_path, wrong, size)
        assert done.returncode == 1, done
        assert words in done.stderr
        assert list((tmp_path / "into").iterdir()) == []


@pytest.mark.parametrize("python", PYTHONS)
def test_owners_and_dangerous_modes_are_not_kept(tmp_path: Path, python: str) -> None:
    done = unpack(
        tmp_path,
        member("bin/tool", mode=0o6777, uid=61234),
        member("lib/liba.so.1", uid=61234, mode=0o666),
        member("lib/liba.so", SYM, "liba.so.1"),
        member("lib64", SYM, "lib"),
        member("lib/copy", LNK, "top/lib/liba.so.1"),
        python=python,
    )
    assert done.returncode == 0, done.stderr
    into = tmp_path / "into"
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in into.rglob("*") if p.is_file()}
    assert modes["tool"] == 0o755
    assert modes["liba.so.1"] == 0o644
    assert {p.lstat().st_uid for p in into.rglob("*")} == {os.geteuid()}
    assert (into / "lib64/liba.so").read_text() == "pwned"
    assert (into / "lib/copy").read_text() == "pwned"
    again = unpack(tmp_path, member("lib64/libb.so"), member("bin/tool"), python=python)
    assert again.returncode == 0, "a second archive goes into the same folder"
    assert (into / "lib/libb.so").exists()
