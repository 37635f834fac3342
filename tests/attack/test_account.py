"""What root's `fix`, `run` and `smoke` start in the environment of another account."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.fixes import inventory
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes.apply import Applier
from dsdoctor.host import account
from dsdoctor.model.fix_plan import Plan, Proof, Run
from tests.attack.conftest import MALLORY, Trap

ROOT = Path(__file__).parents[2]
WHO = "#!/bin/sh\necho $(id -u) $(id -G) $HOME $XDG_STATE_HOME\n"
#: An interpreter that every account may run, of the version whose packages are at hand.
SYSTEM_PYTHON = shutil.which(
    f"python3.{sys.version_info[1]}", path="/usr/bin:/usr/local/bin"
)  # fmt: skip
needs_python = pytest.mark.skipif(
    SYSTEM_PYTHON is None, reason="no Python of this version that every account may run"
)


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    choice = account._Choice
    choice.given, choice.reported = None, set()
    yield
    choice.given, choice.reported = None, set()


def applied(trap: Trap, *argv: str) -> str:
    """What a step of a fix prints."""
    said: list[str] = []
    plan = Plan(
        name="p", title="t", steps=(Run(argv=argv, why="w"),),
        proof=(Proof(argv=argv, why="proof"),),
    )  # fmt: skip
    book = journals.Journal.begin("p", {}, trap.folder / "state")
    applier = Applier(plan, book, {"PATH": "/usr/bin:/bin", "XDG_STATE_HOME": "/root"}, said.append)
    applier.carry_out()
    assert not applier.prove()
    lines = [line.lstrip(" |") for line in said if line.startswith("  |")]
    assert len(set(lines)) == 1, said
    return lines[0]


def test_a_step_in_the_environment_of_another_account_runs_as_that_account(trap: Trap) -> None:
    python = trap.file("venv/bin/python", WHO, 0o755)
    assert applied(trap, str(python), "-m", "pip") == f"{MALLORY} {MALLORY} /"


def test_a_package_manager_of_root_in_a_folder_of_another_account(trap: Trap) -> None:
    """Conda runs the scripts of packages, and `python` of the environment."""
    conda = trap.folder / "conda"
    conda.write_text(WHO)
    conda.chmod(0o755)
    for words in (["-p", str(trap.home)], [f"--prefix={trap.home}"]):
        assert applied(trap, str(conda), "install", *words).split()[0] == str(MALLORY)
    assert applied(trap, str(conda), "install", "-p", str(trap.folder)).split()[0] == "0"
    account.set_account("0")
    assert applied(trap, str(conda), "install", "-p", str(trap.home)).split()[0] == "0"


def test_what_is_installed_is_asked_as_that_account(trap: Trap) -> None:
    noted = trap.folder / "noted"
    noted.mkdir()
    noted.chmod(0o777)
    python = trap.file(
        "venv/bin/python", f"#!/bin/sh\nid -u > {noted}/$(id -u)\necho '[]'\n", 0o755
    )
    inventory.take("pip", [str(python), "-m", "pip", "install", "x"], {"PATH": "/usr/bin:/bin"})
    assert [path.name for path in noted.iterdir()] == [str(MALLORY)]


def anybody(trap: Trap, **more: str) -> dict[str, str]:
    """A dsdoctor that every account can read, with root's folders in its environment."""
    packages = next(path for path in map(Path, sys.path) if path.name == "site-packages")
    return {
        "PATH": "/usr/bin:/bin",
        "HOME": "/root",
        "XDG_STATE_HOME": "/root/state",
        "PYTHONPATH": f"{ROOT}:{ROOT / 'checks'}:{packages}",
        **more,
    }


def doctor(trap: Trap, *argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(SYSTEM_PYTHON), "-P", "-m", "dsdoctor", *argv],
        env=anybody(trap), cwd="/", capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip


@needs_python
def test_run_as_user_runs_everything_as_that_account(trap: Trap) -> None:
    runs = trap.home / "runs"
    runs.mkdir()
    trap.give(runs)
    words = ["--as-user", str(MALLORY), "--preflight", "off", "--runs-dir", str(runs)]
    who = "import os; print(os.getresuid(), os.getresgid(), os.getgroups(), os.environ['HOME'])"
    done = doctor(trap, "run", *words, "--", str(SYSTEM_PYTHON), "-c", who)
    assert done.returncode == 0, done.stderr
    ids = f"({MALLORY}, {MALLORY}, {MALLORY})"
    assert f"{ids} {ids} [] /" in done.stdout
    made = [path for path in runs.rglob("*") if not path.is_symlink()]
    assert made
    assert {path.stat().st_uid for path in made} == {MALLORY}


@needs_python
def test_root_is_given_up_for_good(trap: Trap) -> None:
    code = (
        "import json, os, sys\nfrom dsdoctor.host import account\n"
        f"account.set_account('{MALLORY}')\naccount.become_given()\n"
        "try:\n    os.setuid(0)\n    back = True\nexcept PermissionError:\n    back = False\n"
        "kept = sorted(k for k in os.environ if 'XDG' in k)\n"
        "print(json.dumps([os.geteuid(), back, kept, os.getgroups()]))\n"
    )
    done = subprocess.run(
        [str(SYSTEM_PYTHON), "-c", code], env=anybody(trap), cwd="/", capture_output=True,
        text=True, check=False, timeout=500, extra_groups=[0, 4, 6],
    )  # fmt: skip
    # nor does it keep root's groups, which open /dev/sda and /var/log
    assert json.loads(done.stdout) == [MALLORY, False, [], []], done.stderr


@needs_python
def test_smoke_becomes_the_owner_of_the_interpreter(trap: Trap) -> None:
    code = (
        "import os\nfrom dsdoctor.host import account\n"
        f"account.become_owner({str(trap.home / 'venv/bin/python')!r})\nprint(os.geteuid())\n"
    )
    trap.file("venv/bin/python", WHO, 0o755)
    done = subprocess.run(
        [str(SYSTEM_PYTHON), "-c", code], env=anybody(trap), cwd="/", capture_output=True,
        text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.stdout.strip() == str(MALLORY), done.stderr
    assert "belongs to uid 61234, so everything runs as that account" in done.stderr


@needs_python
def test_a_fix_writes_as_the_owner_of_the_environment(trap: Trap) -> None:
    """The file, its journal and its undo: root does none of it, and no planted name matters."""
    trap.file("venv/pyvenv.cfg", f"home = {Path(str(SYSTEM_PYTHON)).parent}\n")
    python = trap.home / "venv" / "bin" / "python"
    python.parent.mkdir()
    trap.give(python.parent)
    python.symlink_to(str(SYSTEM_PYTHON))
    trap.give(python)
    broken = "gpu1 slots=8\ngpu1 slots=8\n"
    hosts = trap.file("hostfile", broken)
    trap.link(".hostfile.dsdoctor-new")

    def fix(*argv: str) -> subprocess.CompletedProcess[str]:
        code = (
            "import dataclasses, sys\nfrom dsdoctor.host import account\n"
            "plain = account.account_of\n"
            f"account.account_of = lambda uid: plain(uid)._replace(home={str(trap.home)!r})\n"
            "from dsdoctor.cli.main import run\nsys.exit(run(sys.argv[1:]))\n"
        )
        given = ["fix", *argv, "--yes", "--python", str(python)]
        return subprocess.run(
            [str(SYSTEM_PYTHON), "-c", code, *given], env=anybody(trap), cwd="/",
            capture_output=True, text=True, check=False, timeout=500,
        )  # fmt: skip

    done = fix("repair-hostfile", "--hostfile", str(hosts), "--quick", "--reach", "home")
    assert hosts.read_text() != broken, done.stdout + done.stderr
    assert done.stderr.count("everything runs as that account") == 1
    made = [path for path in trap.home.rglob("*") if "dsdoctor" in str(path.relative_to(trap.home))]
    assert [path for path in made if path.suffix == ".jsonl"], "its journal is with its owner"
    assert {path.lstat().st_uid for path in (hosts, *made)} == {MALLORY}
    undone = fix("--undo")
    assert undone.returncode == 0, undone.stderr
    assert hosts.read_text() == broken


def test_smoke_asks_before_anything_is_started(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.testing import CliRunner

    from dsdoctor.cli.smoke import command

    asked: list[str] = []

    def note(interpreter: str) -> None:
        asked.append(interpreter)
        raise UsageError("enough")

    monkeypatch.setattr(account, "become_owner", note)
    python = trap.file("venv/bin/python", WHO, 0o755)
    found = CliRunner().invoke(command, ["--cpu", "1", "--python", str(python)])
    assert isinstance(found.exception, UsageError), found.output
    assert asked == [str(python)]


def test_an_account_that_cannot_read_dsdoctor_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(account, "_open_to_all", lambda _path: False)
    with pytest.raises(UsageError, match="cannot be read by uid 61234"):
        account.become(account.account_of(MALLORY))
    assert os.geteuid() == 0
