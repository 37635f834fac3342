"""What a root gate's interpreter takes code from, by way of links; and values of `[hook]`."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.hook import entry, trust
from dsdoctor.hook.request import Request
from dsdoctor.settings import hook_values
from tests.attack.conftest import Trap
from tests.attack.test_hook import hook, script, start
from tests.hook.test_wrapper import SHELLS, VERDICT


def environment(trap: Trap, base: Path) -> Path:
    """A virtual environment whose interpreter is a link to that of a base installation."""
    (base / "bin").mkdir(parents=True)
    real = base / "bin" / "python"
    real.write_text(f"#!/bin/sh\n{VERDICT}echo ran; say block $t; exit 1\n")
    real.chmod(0o755)
    python = trap.folder / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(real)
    return python


def refused(trap: Trap, python: Path, part: str) -> None:
    assert part in trust.why_not(str(python))
    for shell in SHELLS:
        done = start(script(trap, "slurm-prolog", "", python=python), shell)
        assert (done.returncode, done.stdout) == (0, ""), shell


@pytest.mark.parametrize("folder", ["lib-dynload", "site-packages"])
def test_the_base_installation_counts_too(trap: Trap, folder: str) -> None:
    base = trap.folder / "base"
    python = environment(trap, base)
    inside = base / "lib/python3.11" / folder
    inside.mkdir(parents=True)
    assert trust.why_not(str(python)) == ""
    for shell in SHELLS:
        assert start(script(trap, "slurm-prolog", "", python=python), shell).stdout == "ran\n"
    inside.chmod(0o777)
    refused(trap, python, folder)


def test_a_folder_that_a_link_leads_through_counts_too(trap: Trap) -> None:
    """`venv/bin` is root's link to another account's folder, in which `python` is a link again."""
    python = environment(trap, trap.folder / "base")
    theirs = trap.home / "bin"
    python.parent.rename(theirs)
    trap.give(theirs)
    python.parent.symlink_to(theirs)
    refused(trap, python, "belongs to uid 61234")


def prefix(trap: Trap) -> tuple[Path, Path]:
    """An interpreter with a library of its own, and its site-packages."""
    python = environment(trap, trap.folder / "base")
    site = trap.folder / "base" / "lib/python3.11/site-packages"
    site.mkdir(parents=True)
    assert trust.why_not(str(python)) == ""
    return python, site


@pytest.mark.parametrize(
    "folder", ["venv", "venv/bin", "base", "base/bin", "base/lib", "base/lib/python3.11",
               "base/lib/python3.11/site-packages"],
)  # fmt: skip
def test_a_sticky_folder_in_which_a_new_file_would_be_imported(trap: Trap, folder: str) -> None:
    """A module, `lib/python311.zip`, or a `pyvenv.cfg` that chooses another library."""
    python, _ = prefix(trap)
    (trap.folder / folder).chmod(0o1777)
    refused(trap, python, "mode 1777")


@pytest.mark.parametrize("mode", [0o644, 0o666])
def test_whoever_controls_pyvenv_cfg_chooses_the_library(trap: Trap, mode: int) -> None:
    python, _ = prefix(trap)
    config = trap.folder / "venv" / "pyvenv.cfg"
    config.write_text("home = /usr/bin\n")
    assert trust.why_not(str(python)) == ""
    config.chmod(mode)
    if mode == 0o644:
        trap.give(config)
    refused(trap, python, "pyvenv.cfg")


@pytest.mark.parametrize("relative", [False, True])
def test_a_folder_that_a_pth_file_adds(trap: Trap, relative: bool) -> None:
    """As `pip install -e` in the home of somebody leaves it."""
    python, site = prefix(trap)
    added = Path("../../../../home") if relative else trap.home
    (site / "a.pth").write_text(f"\n# a comment\nimport sys\n{trap.folder}/absent\n{added} ")
    refused(trap, python, "belongs to uid 61234")


@pytest.mark.parametrize("option", ["--json", "--textfile"])
def test_nothing_is_written_into_a_folder_of_another_account(trap: Trap, option: str) -> None:
    """Without any link: its owner could exchange the folder for one at the next run."""
    place = trap.home / "verdict"
    hook("npd", option, str(place), "--run-folder", str(trap.folder / "run"))
    assert not place.exists()
    own = trap.folder / "verdict"
    hook("npd", option, str(own), "--run-folder", str(trap.folder / "run"))
    assert own.exists()


def test_a_mistake_in_the_configuration_is_in_syslog(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    config = trap.folder / "c.toml"
    config.write_text("[hook]\nbudget = 'soon'\ndry_rum = true\n")
    monkeypatch.setenv("DSDOCTOR_CONFIG", str(config))
    monkeypatch.setattr(entry, "_log", said.append)
    entry.run(Request("npd", run_folder=str(trap.folder / "run"), max_age=0.0))
    lines = [line for line in said if "configuration: " in line]
    assert [word for word in ("`budget = ", "`dry_rum`") if any(word in row for row in lines)] == [
        "`budget = ", "`dry_rum`",
    ], said  # fmt: skip


@pytest.mark.any_user
@pytest.mark.parametrize(
    ("name", "wrong", "right"),
    [
        ("budget", 0, 1.0),
        ("budget", 601, 600.0),
        ("budget", -5, 5.0),
        ("budget", "5 s", 5.0),
        ("budget", True, 5.0),
        ("max_age", -1, 0.0),
        ("max_age", 86401, 86400.0),
        ("textfile", "relative.prom", "/var/lib/x.prom"),
        ("gpus", "", "all"),
        ("ignore", "memlock-low", ["memlock-low"]),
        ("fail_closed", "no", False),
        ("dry_run", 1, True),
    ],
)
def test_a_value_out_of_its_bounds_is_not_obeyed(name: str, wrong: object, right: object) -> None:
    values, problems = hook_values({name: wrong})
    assert values == {}
    assert [problem for problem in problems if f"`{name} = " in problem] == problems != []
    assert hook_values({name: right}) == ({name: right}, [])
