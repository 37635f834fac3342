"""What root's programs are started with, and what programs of other accounts get from root."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.fixes import inventory, undo
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes.apply import Applier
from dsdoctor.host import LocalHost, account, own_environment
from dsdoctor.model.fix_plan import Plan, Run
from dsdoctor.process import Account
from tests.attack.conftest import MALLORY, Trap
from tests.support.command import clean_environment, dsdoctor

SECRETS = {
    "HF_TOKEN": "hunter2hunter2",
    "SLURM_JWT": "hunter3hunter3",
    "PIP_INDEX_URL": "https://bob:hunter4@example.org/simple",
    "UV_EXTRA_INDEX_URL": "https://bob:hunter5@example.org/simple",
    "AWS_SECRET_ACCESS_KEY": "hunter6hunter6",
}


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    choice = account._Choice
    choice.given, choice.reported = None, set()
    own_environment._reported.clear()
    yield
    choice.given, choice.reported = None, set()


@pytest.fixture
def manager(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Path]:
    """Root's package manager, called in a folder of another account; and what it notes."""
    noted = trap.folder / "noted"
    path = trap.folder / "python"
    path.write_text(f"#!/bin/sh\n(pwd; /usr/bin/env) >> {noted}\necho '[]'\n")
    path.chmod(0o755)
    monkeypatch.chdir(trap.home)
    return path, noted


def hostile(trap: Trap) -> dict[str, str]:
    """What `sudo -E` may have kept of the other account."""
    trap.file("pip.conf", "[global]\nindex-url = https://example.org/evil\n")
    names = (
        "PIP_CONFIG_FILE",
        "CONDARC",
        "UV_CONFIG_FILE",
        "APT_CONFIG",
        "PIP_FIND_LINKS",
        "MAMBARC",
    )
    given = dict.fromkeys(names, str(trap.home / "pip.conf"))
    return {"PATH": "/usr/bin:/bin", "NCCL_DEBUG": "INFO", "HOME": str(trap.home), **given}


def check(noted: Path, trap: Trap) -> None:
    said = noted.read_text()
    assert said.startswith("/\n"), "`python -m pip` takes modules from the folder it starts in"
    assert str(trap.home) not in said.replace(f"OLDPWD={trap.home}", "")
    assert "NCCL_DEBUG=INFO" in said


def test_a_step_of_root_takes_nothing_from_another_account(
    trap: Trap, manager: tuple[Path, Path]
) -> None:
    program, noted = manager
    plan = Plan(name="p", title="t", steps=(Run(argv=(str(program), "-m", "pip"), why="w"),))
    book = journals.Journal.begin("p", {}, trap.folder / "state")
    Applier(plan, book, hostile(trap), lambda _line: None).carry_out()
    check(noted, trap)


def test_a_list_of_packages_and_its_undo_take_nothing_from_another_account(
    trap: Trap, manager: tuple[Path, Path]
) -> None:
    program, noted = manager
    argv = [str(program), "-m", "pip", "install", "x"]
    inventory.take("pip", argv, hostile(trap))
    check(noted, trap)
    noted.unlink()
    record = {"manager": "pip", "argv": argv, "before": {"a": "a==1"}}
    undo._packages(record, None, hostile(trap), lambda _line: None)
    said = noted.read_text()
    assert said.count("\nNCCL_DEBUG=") > 1, "asked, then restored"
    assert str(trap.home) not in said.replace(f"OLDPWD={trap.home}", "")


def test_what_root_was_told_to_run_as_root_keeps_its_environment(
    trap: Trap, manager: tuple[Path, Path]
) -> None:
    account.set_account("0")
    program, noted = manager
    inventory.take("pip", [str(program), "-m", "pip", "install", "x"], hostile(trap))
    assert f"PIP_CONFIG_FILE={trap.home}" in noted.read_text()


def test_an_interpreter_of_another_account_gets_no_secret_of_root(
    trap: Trap, capsys: pytest.CaptureFixture[str]
) -> None:
    python = trap.file("venv/bin/python", "#!/bin/sh\nid -u; env\n", 0o755)
    host = LocalHost({"PATH": "/usr/bin:/bin", "NCCL_DEBUG": "INFO", **SECRETS})
    said = host.run([str(python), "x.py"], timeout=100).text
    assert said.startswith(f"{MALLORY}\n")
    assert "NCCL_DEBUG=INFO" in said
    assert "hunter" not in said
    told = capsys.readouterr().err
    assert "without `AWS_SECRET_ACCESS_KEY`, `HF_TOKEN`" in told
    assert "and 1 more, which may be secret" in told
    assert "hunter" not in told


def test_dsdoctor_itself_forgets_them_when_it_gives_up_root(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As `fix` and `smoke` do; a command that `run --as-user` starts gets what root meant for it."""
    monkeypatch.setattr(account, "_open_to_all", lambda _path: True)  # our folder may be closed
    child = os.fork()
    if child == 0:  # pragma: no cover
        try:
            os.environ.update(SECRETS)
            account.become(account.account_of(MALLORY))
            good = os.geteuid() == MALLORY and not any("hunter" in v for v in os.environ.values())
            os._exit(0 if good else 1)
        except BaseException:  # noqa: BLE001
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    given: list[Account] = []
    account.set_account(str(MALLORY))
    monkeypatch.setattr(account, "become", given.append)
    account.become_given()
    assert given[0].environment(SECRETS)["HF_TOKEN"] == SECRETS["HF_TOKEN"]


def test_a_fleet_is_asked_by_programs_of_root(trap: Trap) -> None:
    """`sudo -E` keeps a PATH with the folder of another account in it."""
    noted = trap.folder / "noted"
    for name in ("ssh", "pdsh", "srun", "kubectl"):
        trap.file(f"bin/{name}", f"#!/bin/sh\necho {name} >> {noted}\nexit 1\n", 0o755)
    env = clean_environment(trap.folder)
    env["PATH"] = f"{trap.home}/bin:{env['PATH']}"
    for engine in ("clustershell", "pdsh", "srun"):
        done = dsdoctor(
            "fleet", "check", "--nodes", "no-such-host.invalid", "--engine", engine, "--timeout", "5",
            env=env, cwd=trap.folder,
        )  # fmt: skip
        assert f"are not looked for in `{trap.home}/bin`" in done.err
    assert not noted.exists()


@pytest.mark.any_user
def test_the_completion_script_starts_no_shell(tmp_path: Path) -> None:
    (tmp_path / "rc").write_text(f"echo x >> {tmp_path}/noted\n")
    env = clean_environment(tmp_path, BASH_ENV=str(tmp_path / "rc"), ENV=str(tmp_path / "rc"))
    done = dsdoctor("completion", "bash", env=env, cwd=tmp_path)
    assert done.status == 0
    assert "complete -o nosort" in done.out
    assert not (tmp_path / "noted").exists()
