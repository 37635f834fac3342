"""Whether another account could change something is judged in one way, wherever root asks."""

from __future__ import annotations

import os
import re
import site
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import dsdoctor
from dsdoctor.errors import UsageError
from dsdoctor.hook.rundir import RunFolder, RunFolderError
from dsdoctor.host import account, own_environment
from dsdoctor.safe_path import foreign_owner, why_untrusted
from tests.attack.conftest import MALLORY, Trap


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    account._Choice.given = None
    own_environment._reported.clear()
    yield
    own_environment._reported.clear()


def folder(trap: Trap, how: str) -> Path:
    """A folder of root with a program of root, which another account can change in one way."""
    made = trap.folder / "above" / "tools"
    made.mkdir(parents=True)
    program = made / "scontrol"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    if how == "a link":  # of root, to one of the other account, to the folder
        (trap.folder / "way").symlink_to(trap.link("own", made))
        return trap.folder / "way"
    place = made.parent if how == "above" else program if how == "program" else made
    os.chown(place, 0, MALLORY if how == "their group" else 0)
    modes = {"root's group": 0o775, "their group": 0o775, "sticky": 0o1777, "nobody": 0o755}
    place.chmod(modes.get(how, 0o777))
    return made


HOW = ("everybody", "root's group", "their group", "above", "a link")


def as_root(made: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, bool]:
    """Which of root's uses accept a folder."""
    given = {"PATH": f"/usr/bin:{made}", "CXX": f"{made}/scontrol -O2", "NEW": f"{made}/absent"}
    given["DEEP"] = f"{made}/absent/x"
    kept = own_environment.own_environment(given)
    monkeypatch.chdir(made)
    monkeypatch.setattr(site, "getusersitepackages", lambda: str(made))
    monkeypatch.setattr(sys, "path", [*sys.path, str(made)])
    script = str(account._SCRIPTS / account._OWN_SCRIPTS[0])
    try:
        account.refuse_foreign_folder()
        several = True
    except UsageError:
        several = False
    return {
        "a program": account.own_tool("scontrol", str(made)) is not None,
        "PATH": kept["PATH"] != "/usr/bin",
        "a variable": "CXX" in kept,
        "a variable's new file": "NEW" in kept,
        "a variable's new folder": "DEEP" in kept,
        "the user site": account.isolated([sys.executable, script])[1] == "-E",
        "the working folder": account.working_folder(str(made), None) is not None
        and account.working_folder(str(made), None) != "/",
        "several nodes": several,
    }


@pytest.mark.parametrize("how", HOW)
def test_what_others_can_change_is_used_nowhere(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    used = as_root(folder(trap, how), monkeypatch)
    if how == "a link":  # the kernel says where a process is without them
        del used["several nodes"]
    assert not any(used.values()), used


def test_what_only_root_can_change_is_used_everywhere(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert all(as_root(folder(trap, "nobody"), monkeypatch).values())


def test_a_program_that_others_can_write_is_not_run(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = as_root(folder(trap, "program"), monkeypatch)
    assert {name for name, accepted in used.items() if not accepted} == {"a program", "a variable"}


def test_in_a_sticky_folder_others_make_new_names_only(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    used = as_root(folder(trap, "sticky"), monkeypatch)
    assert {name for name, accepted in used.items() if accepted} == {"a program", "a variable"}


@pytest.mark.parametrize("mode", [0o775, 0o777, 0o1777])
def test_a_run_folder_is_the_hook_s_alone(trap: Trap, mode: int) -> None:
    made = trap.folder / "run"
    made.mkdir()
    RunFolder(made)
    made.chmod(mode)
    with pytest.raises(RunFolderError):
        RunFolder(made)


def test_the_owner_of_a_link_on_the_way_is_the_owner(trap: Trap) -> None:
    made = folder(trap, "a link")
    assert foreign_owner(made / "scontrol") == MALLORY
    assert foreign_owner(made.resolve() / "scontrol") is None
    way = trap.folder / "theirs"  # as in a sticky folder of root
    way.symlink_to(made.resolve())
    assert foreign_owner(way / "scontrol") is None
    trap.give(way)
    assert foreign_owner(way / "scontrol") == MALLORY


def test_devices_and_sockets_in_variables_are_no_files_of_others(
    capsys: pytest.CaptureFixture[str],
) -> None:
    given = {"PIP_CONFIG_FILE": "/dev/null", "PATH": "/usr/bin"}
    assert own_environment.own_environment(given) == given
    assert capsys.readouterr().err == ""


@pytest.mark.any_user
def test_modes_are_judged_in_one_place() -> None:
    judged = re.compile(r"S_IW(GRP|OTH)\b|& 0o0*(22|20|02|2)\b")
    root = Path(dsdoctor.__file__).parent
    found = {
        path.relative_to(root).as_posix()
        for path in root.rglob("*.py")
        if judged.search(path.read_text(encoding="utf-8"))
    }
    assert found == {"safe_path.py"}


@pytest.mark.parametrize("end", ["/.", "/./", "/absent/..", "/below/..", "//."])
def test_a_path_that_ends_in_no_name_is_judged_too(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    """`PATH=/home/mallory/tools/.` is that folder, and not `/`."""
    theirs = trap.home / "tools"
    (theirs / "below").mkdir(parents=True)
    trap.give(theirs)
    (theirs / "scontrol").write_text("#!/bin/sh\n")
    (theirs / "scontrol").chmod(0o755)
    given = f"{theirs}{end}"
    assert str(MALLORY) in why_untrusted(given, entries=True, absent=True)
    assert foreign_owner(given) == MALLORY
    way = trap.folder / "way"
    way.symlink_to(given)  # root's own
    assert str(MALLORY) in why_untrusted(way, entries=True, absent=True)
    env = {"PATH": f"/usr/bin:{given}", "PYTHONPATH": given}
    kept = own_environment.own_environment(env)
    assert kept["PATH"] == "/usr/bin"
    if Path(given).is_dir():
        chosen = account.choose([sys.executable, "-c", "pass"], env)
        assert chosen is not None
        assert chosen.uid == MALLORY
    monkeypatch.chdir(theirs)
    for here in (".", "", "below/.."):
        assert str(MALLORY) in why_untrusted(here, entries=True), here


def test_a_path_of_root_that_ends_in_no_name_is_accepted(trap: Trap) -> None:
    (trap.folder / "below").mkdir()
    for given in ("/", "/.", "/..", f"{trap.folder}/.", f"{trap.folder}/below/.."):
        assert why_untrusted(given, entries=True) == "", given
        assert foreign_owner(given) is None, given
