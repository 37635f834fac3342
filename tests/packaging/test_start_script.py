"""The command `dsdoctor`: a shell script beside the one that installers write."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parent.parent.parent / "packaging" / "bin" / "dsdoctor"

#: What an installer's script would do is to import dsdoctor; this one shows how it was started.
SHOWS = "import sys\nprint('as usual', *sys.argv[1:])\nsys.exit(3)\n"
#: The same of a package of that name.
PACKAGE = (
    "import sys\ndef main():\n    print('isolated' if sys.flags.isolated else 'not isolated', "
    "*sys.argv[1:])\n    return 4\n"
)

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="Python is isolated for root only")


def installed(folder: Path, *, python: str = sys.executable, lines: str = "") -> Path:
    """A folder of programs with the script and an installer's entry; returns the command."""
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT, folder / "dsdoctor")
    entry = folder / "dsdoctor-python"
    entry.write_text((lines or f"#!{python}\n") + SHOWS)
    entry.chmod(0o755)
    return folder / "dsdoctor"


def started(command: Path | str, *words: str, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [str(command), *words], env={"PATH": "/usr/bin:/bin", **env}, cwd="/",
        capture_output=True, text=True, check=False, timeout=100,
    )  # fmt: skip
    assert done.stderr == ""
    return done.returncode, done.stdout.strip()


def environment(folder: Path) -> str:
    """A virtual environment with a package `dsdoctor`; returns its interpreter."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=100
    )
    (site,) = (folder / "lib").glob("python3*/site-packages")
    (site / "dsdoctor").mkdir()
    (site / "dsdoctor" / "__init__.py").touch()
    (site / "dsdoctor" / "__main__.py").write_text(PACKAGE)
    return str(folder / "bin" / "python")


@needs_root
@pytest.mark.parametrize("form", ["plain", "quoted", "bare"])
def test_root_s_python_is_isolated(tmp_path: Path, form: str) -> None:
    """Also where the installer wrote two lines, since the path is long or has spaces."""
    python = environment(tmp_path / ("an environment" if form == "quoted" else "env"))
    lines = {
        "plain": f"#!{python}\n",
        "quoted": f"#!/bin/sh\n'''exec' \"{python}\" \"$0\" \"$@\"\n' '''\n",
        "bare": f"#!/bin/sh\n'''exec' {python} \"$0\" \"$@\"\n' '''\n",
    }[form]
    command = installed(tmp_path / "bin", lines=lines)
    words = ("check", "--", "a b", "$(id)", "*", "")
    assert started(command, *words) == (4, "isolated check -- a b $(id) *")


@needs_root
def test_a_dsdoctor_that_only_the_python_path_holds_starts_as_usual(tmp_path: Path) -> None:
    """Of `pip install --target`, and of the user site: an isolated Python would not find it."""
    subprocess.run(
        [sys.executable, "-m", "venv", "--without-pip", str(tmp_path / "env")],
        check=True, timeout=100,
    )  # fmt: skip
    command = installed(tmp_path / "bin", python=str(tmp_path / "env" / "bin" / "python"))
    assert started(command, "packs", "a b") == (3, "as usual packs a b")


@needs_root
@pytest.mark.parametrize("first", ["#!/usr/bin/env python3", "#!/absent/python3", "#!/bin/sh"])
def test_an_interpreter_that_is_not_understood(tmp_path: Path, first: str) -> None:
    """Then the entry is started as it is."""
    command = installed(tmp_path / "bin", lines=f"{first}\n")
    if first == "#!/usr/bin/env python3":
        assert started(command, "packs") == (3, "as usual packs")
        return
    done = subprocess.run([str(command)], capture_output=True, check=False, timeout=100)
    assert done.returncode not in (0, 1, 3)


def test_other_accounts_start_the_entry_as_it_is(tmp_path: Path) -> None:
    command = installed(tmp_path / "bin", python="/usr/bin/env python3")
    folder = tmp_path
    while folder != folder.parent and os.geteuid() == 0:
        if folder.stat().st_mode & 0o005 != 0o005:
            folder.chmod(0o755)
        folder = folder.parent
    dropped = {"user": 61234, "group": 61234, "extra_groups": []} if os.geteuid() == 0 else {}
    done = subprocess.run(  # type: ignore[call-overload]
        [str(command), "packs"], env={"PATH": "/usr/bin:/bin"}, cwd="/",
        capture_output=True, text=True, check=False, timeout=100, **dropped,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (3, "as usual packs\n"), done


def test_the_command_may_be_a_link(tmp_path: Path) -> None:
    """As pipx and uv make it."""
    python = environment(tmp_path / "env")
    command = installed(tmp_path / "bin", python=python)
    links = tmp_path / "links"
    links.mkdir()
    (links / "first").symlink_to("../bin/dsdoctor")
    (links / "second").symlink_to(links / "first")
    assert started(links / "second", "packs")[0] == started(command, "packs")[0]
    done = subprocess.run(
        ["sh", str(SCRIPT.name), "x"], cwd=command.parent, capture_output=True, check=False,
        timeout=100,
    )  # fmt: skip
    assert done.returncode in (3, 4)


def test_an_entry_that_is_missing_has_one_line_and_status_2(tmp_path: Path) -> None:
    command = installed(tmp_path / "bin")
    (tmp_path / "bin" / "dsdoctor-python").unlink()
    done = subprocess.run([str(command)], capture_output=True, text=True, check=False, timeout=100)
    assert done.returncode == 2
    assert done.stderr == (
        f"dsdoctor: `{tmp_path}/bin/dsdoctor-python` is missing; install dsdoctor again\n"
    )
