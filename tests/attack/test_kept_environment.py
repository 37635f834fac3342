"""Root with another's HOME, XDG folders and PYTHONPATH, or in another's folder."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor import files, packs
from dsdoctor.errors import UsageError
from dsdoctor.fixes import journal as journals
from dsdoctor.fixes.undo import UndoError, undo
from dsdoctor.host import account
from dsdoctor.host.door import HostError
from dsdoctor.host.local import LocalHost
from dsdoctor.interpreter import CHILDREN
from tests.attack.conftest import MALLORY, Trap

EVIL = "import pathlib, os\npathlib.Path({0!r}).write_text(str(os.geteuid()))\n"


def kept(trap: Trap, **more: str) -> dict[str, str]:
    """The environment that `sudo -E` leaves."""
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(trap.home),
        "XDG_CONFIG_HOME": str(trap.home / ".config"),
        "XDG_STATE_HOME": str(trap.home / ".state"),
        "DSDOCTOR_PYTHON": sys.executable,
        **more,
    }


def dsdoctor(
    trap: Trap, *argv: str, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(Path(sys.executable).parent / "dsdoctor"), *argv],
        env=kept(trap) if env is None else env,
        cwd=trap.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )


def test_checks_of_another_account_are_not_run(trap: Trap) -> None:
    ran = trap.folder / "ran"
    check = trap.file(".config/dsdoctor/checks.d/evil.py", EVIL.format(str(ran)))
    done = dsdoctor(trap, "packs")
    assert "root does not run it" in done.stdout + done.stderr
    assert "belongs to uid 61234" in done.stdout + done.stderr
    done = dsdoctor(trap, "packs", "--help")
    registry = packs.load([str(check.parent)])
    assert "root does not run it" in registry.problems[0].message
    assert not ran.exists()


def test_a_check_that_is_exchanged_after_it_was_judged_is_not_run(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The race: what was judged is what is run."""
    ran = trap.folder / "ran"
    good = trap.folder / "moon.py"
    good.write_text('"""Nothing."""\n')
    read = files.read

    def read_and_exchange(path: Path, *, strict: bool, limit: int) -> bytes:
        content = read(path, strict=strict, limit=limit)
        good.write_text(EVIL.format(str(ran)))
        return content

    monkeypatch.setattr(files, "read", read_and_exchange)
    packs.load_file(good)
    assert not ran.exists()


def test_the_configuration_of_another_account_is_ignored(trap: Trap) -> None:
    trap.file(".config/dsdoctor/config.toml", "this is no TOML")
    done = dsdoctor(trap, "check", "--quick", "--select", "memlock-low", "--format", "json")
    assert "config.toml` is ignored: " in done.stderr
    assert done.returncode in (0, 1, 3)


def test_a_journal_of_another_account_is_not_undone(trap: Trap) -> None:
    state = trap.home / ".state/dsdoctor/fixes"
    record = {"op": "restore", "path": str(trap.victim), "absent": True}
    trap.file(
        ".state/dsdoctor/fixes/1-x.jsonl", json.dumps({"fix": "x"}) + "\n" + json.dumps(record)
    )
    done = dsdoctor(trap, "fix", "--undo", "--yes")
    assert done.returncode == 2
    assert "belongs to uid 61234" in done.stderr
    assert trap.victim.exists()
    assert state.exists()


def journal(folder: Path, *records: dict[str, object], prefix: Path | None = None) -> Path:
    book = journals.Journal.begin("f", {}, folder / "state", prefix)
    for record in records:
        book.note(str(record.pop("op")), **record)
    book.end("applied")
    return book.path


def refused(path: Path, why: str) -> None:
    with pytest.raises(UndoError, match=f"nothing was undone: .*{why}"):
        undo(journals.Journal(path), {}, lambda _: None)
    assert path.exists()


@pytest.mark.any_user
def test_a_journal_that_was_edited_is_refused_whole(tmp_path: Path) -> None:
    kept_file = tmp_path / "kept"
    kept_file.write_text("")
    record = {"op": "restore", "path": str(tmp_path / "none"), "absent": True}
    path = journal(tmp_path, record)
    whole = path.read_bytes()
    edits = {
        "another path": whole.replace(b"/none", b"/kept"),
        "a line taken out": b"".join(whole.splitlines(keepends=True)[::2]),
        "a line twice": whole + whole.splitlines(keepends=True)[1],
        "a line without a seal": whole + json.dumps(record).encode() + b"\n",
        "no header": b"".join(whole.splitlines(keepends=True)[1:]),
        "depth": whole + b"[" * 100000 + b"\n",
    }
    for content in edits.values():
        path.write_bytes(content)
        refused(path, "was changed after dsdoctor wrote it")
        assert kept_file.exists()
    path.write_bytes(whole)
    other = path.with_name(f"2{path.name}")
    other.write_bytes(whole)
    refused(other, "is the journal of another account or fix")
    (path.parent / "key").write_bytes(b"x" * 32)
    refused(path, "was changed after dsdoctor wrote it")


@pytest.mark.any_user
def test_a_journal_is_bound_to_its_environment_and_to_what_was_kept(tmp_path: Path) -> None:
    prefix = tmp_path / "venv"
    prefix.mkdir()
    path = journal(tmp_path, prefix=prefix)
    prefix.rename(tmp_path / "old")
    prefix.mkdir()
    refused(path, "was replaced since")
    file = tmp_path / "file"
    file.write_text("before")
    book = journals.Journal.begin("f", {}, tmp_path / "state")
    book.note_file(file)
    (backup,) = book.backups.iterdir()
    backup.write_text("not what was there")
    refused(book.path, "was changed since")
    assert file.read_text() == "before"


@pytest.mark.any_user
def test_undo_without_a_terminal_needs_yes(tmp_path: Path) -> None:
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "HOME": str(tmp_path)}
    made = tmp_path / "made"
    made.write_text("")
    book = journals.Journal.begin("f", {}, tmp_path / "dsdoctor/fixes")
    book.note("restore", path=str(made), absent=True)
    book.end("applied")
    argv = [sys.executable, "-m", "dsdoctor", "fix", "--undo"]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False, input="y\n")
    assert done.returncode == 4
    assert "`--yes` undoes it" in done.stderr
    assert made.exists()
    done = subprocess.run([*argv, "--yes"], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert not made.exists()


def test_a_fix_does_not_write_into_a_folder_of_another_account(trap: Trap) -> None:
    """`repair-env-file` and its kind: planted names, and a link in the place of the file."""
    from dsdoctor.fixes.apply import Applier, StepError
    from dsdoctor.model.fix_plan import Link, Plan, Remove, Write

    trap.link("..deepspeed_env.dsdoctor-new")
    trap.file(".deepspeed_env", "A=1\n", 0o777)
    state = trap.folder / "state"
    steps = (
        Write(write=str(trap.home / ".deepspeed_env"), content="B=1\n", why="w"),
        Write(write=str(trap.home / "absent"), content="B=1\n", why="w"),
        Link(link=str(trap.home / "l"), target="/etc", why="l"),
        Remove(remove=str(trap.home / ".deepspeed_env"), why="r"),
    )
    for step in steps:
        plan = Plan(name="p", title="t", steps=(step,))
        book = journals.Journal.begin("p", {}, state)
        with pytest.raises(StepError, match="belongs to uid 61234"):
            Applier(plan, book, {}, lambda _: None).carry_out()
    assert (trap.home / ".deepspeed_env").read_text() == "A=1\n"
    assert (trap.home / ".deepspeed_env").stat().st_uid == MALLORY


def test_a_fix_does_not_take_the_mode_of_what_another_accounts_link_leads_to(trap: Trap) -> None:
    """In a sticky folder root may write, and would leave a file there that all can change."""
    from dsdoctor.fixes.apply import Applier
    from dsdoctor.model.fix_plan import Plan, Write

    trap.folder.chmod(0o1777)
    loose = trap.file("loose", "A=1\n", 0o777)
    link = trap.folder / ".deepspeed_env"
    link.symlink_to(loose)
    trap.give(link)
    plan = Plan(name="p", title="t", steps=(Write(write=str(link), content="B=1\n", why="w"),))
    book = journals.Journal.begin("p", {}, trap.folder / "state")
    Applier(plan, book, {}, lambda _: None).carry_out()
    made = link.lstat()
    assert (stat.S_ISREG(made.st_mode), made.st_mode & 0o022, made.st_uid) == (True, 0, 0)
    assert loose.read_text() == "A=1\n"


# ---- whose programs ----------------------------------------------------------------------------


@pytest.fixture
def fresh() -> Iterator[None]:
    choice = account._Choice
    choice.given, choice.reported = None, set()
    yield
    choice.given, choice.reported = None, set()


SYSTEM_PYTHON = shutil.which("python3", path="/usr/bin:/usr/local/bin") or ""


@pytest.mark.usefixtures("fresh")
def test_a_program_of_another_account_runs_as_that_account(
    trap: Trap, capsys: pytest.CaptureFixture[str]
) -> None:
    python = trap.file("venv/bin/python", "#!/bin/sh\necho $(id -u) $(id -G) $HOME\n", 0o755)
    host = LocalHost({"PATH": "/usr/bin:/bin", "HOME": "/root", "XDG_CACHE_HOME": "/root"})
    for argv, env in (
        ([str(python)], {}),
        (["python"], {"PATH": f"{python.parent}:/usr/bin:/bin"}),
    ):
        found = host.run(argv, env=env).text.split()
        assert found == [str(MALLORY), str(MALLORY), "/"]
    said = capsys.readouterr().err
    assert said.count("belongs to uid 61234, so it runs as that account") == 1
    account.set_account("root")
    assert host.run([str(python)]).text.split()[0] == "0", "asked for"
    with pytest.raises(UsageError, match="is not an account"):
        account.set_account("no-such-account-here")
    account.set_account("12345")
    assert host.run([str(python)]).text.split()[0] == "12345"


@pytest.mark.usefixtures("fresh")
@pytest.mark.skipif(not SYSTEM_PYTHON, reason="no Python that every account may run")
def test_modules_of_another_account_are_not_imported_by_root(trap: Trap) -> None:
    """`sitecustomize` on PYTHONPATH and in the user site, `re` and `torch` in the folder."""
    ran = trap.folder / "ran"
    ran.mkdir()
    ran.chmod(0o777)
    for name in ("re", "torch", "json", "sitecustomize"):
        evil = f"import os\nopen({str(ran)!r} + '/' + str(os.geteuid()), 'w')\n"
        trap.file(f"{name}.py", evil)
    site = trap.home / ".local/lib/python3.11/site-packages"
    trap.file(".local/lib/python3.11/site-packages/usercustomize.py", "raise SystemExit('pwned')")
    assert site.exists()
    code = "import os; print(os.geteuid())"
    for env in ({"PYTHONPATH": str(trap.home)}, {"HOME": str(trap.home)}):
        host = LocalHost({"PATH": "/usr/bin:/bin", **env})
        done = host.run([SYSTEM_PYTHON, "-c", code], cwd="/", timeout=500)
        assert done.text.strip() != "0", (env, done)
    # the examined interpreter is root's, the working folder is not
    host = LocalHost({"PATH": "/usr/bin:/bin", "HOME": "/root"})
    done = host.run([SYSTEM_PYTHON, "-c", "import os, re; print(os.getcwd())"], cwd=str(trap.home))
    assert done.text.strip() == "/"
    done = host.run(
        [sys.executable, str(CHILDREN / "nvml.py")],
        cwd=str(trap.home),
        env={"PYTHONPATH": str(trap.home)},
    )
    assert done.returncode == 0
    assert not (ran / "0").exists()


@pytest.mark.usefixtures("fresh")
@pytest.mark.skipif(not SYSTEM_PYTHON, reason="no Python that every account may run")
def test_the_account_can_read_our_scripts(trap: Trap) -> None:
    """dsdoctor lies where that account may not go: it gets a copy."""
    (trap.home / "bin").mkdir()
    python = trap.give(trap.home / "bin")
    (python / "python3").symlink_to(SYSTEM_PYTHON)
    trap.give(python / "python3")
    host = LocalHost({"PATH": "/usr/bin:/bin", "HOME": "/root"})
    done = host.run([str(python / "python3"), str(CHILDREN / "static.py")], timeout=500)
    assert b"dsdoctor:" in done.stdout, done
    copied = account.readable(["x", str(CHILDREN / "static.py")])[1]
    assert oct(Path(copied).stat().st_mode)[-3:] in ("644", "755")


def test_the_working_folder_is_not_on_the_path_of_the_doctor(trap: Trap) -> None:
    ran = trap.folder / "ran"
    for name in ("re", "click", "torch", "msgspec"):
        trap.file(f"{name}.py", EVIL.format(str(ran)))
    trap.file("sitecustomize.py", EVIL.format(str(ran)))
    argv = [sys.executable, "-I", "-m", "dsdoctor", "check", "--quick", "--format", "json"]
    env = kept(trap, PYTHONPATH=str(trap.home))
    done = subprocess.run(
        [*argv, "--as-user", str(MALLORY)],
        env=env,
        cwd=trap.home,
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode in (0, 1, 3), done.stderr
    assert not ran.exists(), ran.read_text()


# ---- what root quotes --------------------------------------------------------------------------


def test_a_link_to_a_private_file_is_not_quoted(trap: Trap) -> None:
    """`.deepspeed_env -> /etc/shadow`, and `CKPT/latest`."""
    host = LocalHost({"PATH": "/usr/bin:/bin"})
    with pytest.raises(HostError) as caught:
        host.read(str(trap.link(".deepspeed_env")))
    assert "may not be read" in caught.value.missing.detail
    own = trap.file("own", "A=1\n", 0o600)
    assert host.read(str(trap.link("link", own))) == b"A=1\n"
    public = trap.folder / "public"
    public.write_text("B=1\n")
    assert host.read(str(trap.link("other", public))) == b"B=1\n"
    trap.link("latest")
    argv = [sys.executable, "-I", str(CHILDREN / "checkpoint.py"), str(trap.home)]
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0
    assert "root's own" not in done.stdout
    (trap.home / "latest").unlink()
    trap.file("latest", "global_step7", 0o600)
    done = subprocess.run(argv, capture_output=True, text=True, check=False, timeout=500)
    assert "global_step7" in done.stdout


def test_a_fifo_is_not_waited_for(trap: Trap) -> None:
    fifo = trap.home / ".deepspeed_env"
    os.mkfifo(fifo)
    assert LocalHost({"PATH": "/usr/bin:/bin"}).read(str(fifo)) == b""


@pytest.mark.parametrize("command", [["diagnose"], ["triage"], ["check", "--from-report"]])
def test_a_log_that_is_a_link_to_a_private_file_is_not_quoted(
    trap: Trap, command: list[str]
) -> None:
    words = "Traceback (most recent call last):\nKeyError: root-hash\n"
    trap.victim.write_text(words)
    link = trap.link("rank0.log")
    folder = [str(trap.home)] if command == ["diagnose"] else [str(link)]
    try:
        for where in ([str(link)], folder):
            done = dsdoctor(trap, *command, *where)
            assert "root-hash" not in done.stdout + done.stderr
            assert done.returncode == 2
            assert "root" in done.stderr
    finally:
        trap.victim.write_text("root's own\n")


def test_what_samples_gpus_for_root_takes_no_code_from_the_jobs_path(trap: Trap) -> None:
    ran = trap.folder / "ran"
    for name in ("pynvml", "sitecustomize"):
        trap.file(f"{name}.py", EVIL.format(str(ran)))
    argv = [
        sys.executable,
        "-I",
        "-m",
        "dsdoctor",
        "run",
        "--preflight",
        "off",
        "--as-user",
        "root",
    ]
    done = subprocess.run(
        [*argv, "--", "sleep", "2"],
        env=kept(trap, PYTHONPATH=str(trap.home), XDG_STATE_HOME=str(trap.folder / "state")),
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
    )
    assert done.returncode == 0, done.stderr
    assert not ran.exists()
