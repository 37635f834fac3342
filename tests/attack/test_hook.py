"""The gate: what it writes as root, whom it lets root run, and what a sick doctor makes of it."""

from __future__ import annotations

import os
import resource
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.hook import entry, owner, trust
from dsdoctor.hook.request import Request
from dsdoctor.hook.wrapper import Wrapper
from tests.attack.conftest import MALLORY, Trap
from tests.hook.test_wrapper import SHELLS, VERDICT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="Slurm and /proc")


def hook(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-I", "-m", "dsdoctor", "hook", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=500,
        cwd="/",
    )


def script(
    trap: Trap, kind: str, body: str, *, run: Path | None = None, python: Path | None = None
) -> Path:
    """The script of a hook, around a stand-in for the interpreter."""
    if python is None:
        python = trap.folder / "bin" / "python"
        python.parent.mkdir(exist_ok=True)
        python.write_text(f"#!/bin/sh\n{VERDICT}{body}\n")
        python.chmod(0o755)
    text = Wrapper(
        kind,
        str(python),
        budget=60,
        run_folder=None if kind == "slurm-task-prolog" else str(run or trap.folder / "run"),
    ).render()
    path = trap.folder / "hook.sh"
    path.write_text(text)
    path.chmod(0o755)
    return path


def start(
    path: Path, shell: str = "sh", prepare: Callable[[], None] | None = None
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [shutil.which(shell) or shell, str(path)],
        env={},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
        cwd="/",
        preexec_fn=prepare,
    )


# ---- what root writes --------------------------------------------------------------------------


@pytest.mark.parametrize("option", ["--json", "--textfile"])
def test_a_device_that_is_named_stays_a_device(trap: Trap, option: str) -> None:
    null = trap.folder / "null"
    os.mknod(null, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    done = hook("npd", option, str(null), "--run-folder", str(trap.folder / "run"))
    assert done.returncode == 0, done
    assert stat.S_ISCHR(null.stat().st_mode)


def test_stdout_may_be_named(trap: Trap) -> None:
    done = hook("npd", "--json", "/dev/stdout", "--run-folder", str(trap.folder / "run"))
    assert '"schema": "dsdoctor/hook"' in done.stdout
    assert Path("/dev/stdout").is_symlink()


@pytest.mark.parametrize("option", ["--json", "--textfile", "--termination-log"])
def test_a_folder_of_another_account_is_not_written_to(trap: Trap, option: str) -> None:
    trap.link("verdict")
    for pid in range(os.getpid(), os.getpid() + 300):
        trap.link(f".verdict.{pid}")
    kind = "k8s" if option == "--termination-log" else "npd"
    argv = [kind, option, str(trap.home / "verdict"), "--run-folder", str(trap.folder / "run")]
    hook(*argv, "--budget", "1")
    assert (trap.home / "verdict").is_symlink()


def test_a_run_folder_that_somebody_else_has_laid_out(trap: Trap) -> None:
    run = trap.home / "run"
    run.mkdir()
    trap.give(run)
    for pid in range(os.getpid(), os.getpid() + 300):
        for name in (f"said.{pid}", f"verdict.{pid}.json"):
            (run / name).symlink_to(trap.victim)
            trap.give(run / name)
    body = "echo overwritten; say block $t; exit 1"
    for shell in SHELLS:
        done = start(script(trap, "slurm-prolog", body, run=run), shell)
        assert (done.returncode, done.stdout) == (0, "")
    assert not (run / "fail-open").exists()
    done = hook("slurm-prolog", "--run-folder", str(run))
    assert done.returncode == 0
    assert "belongs to uid 61234" in done.stdout


def test_install_does_not_write_into_a_folder_of_another_account(trap: Trap) -> None:
    trap.link(".prolog.sh.new")
    done = hook("install", "slurm", "--into", str(trap.home))
    assert done.returncode == 2
    assert f"`{trap.home}` belongs to uid 61234" in done.stderr
    assert "Traceback" not in done.stderr


# ---- whom root runs ----------------------------------------------------------------------------


def personal_venv(trap: Trap) -> Path:
    python = trap.file("venv/bin/python", f"#!/bin/sh\necho pwned >{trap.folder}/pwned\n", 0o755)
    trap.file("venv/pyvenv.cfg", "home = /usr/bin\n")
    return python


def test_a_personal_environment_is_not_installed_into_roots_prolog(trap: Trap) -> None:
    python = personal_venv(trap)
    for target in ("slurm", "npd", "nagios"):
        done = hook("install", target, "--into", str(trap.folder / "i"), "--python", str(python))
        assert done.returncode == 2
        assert str(python) in done.stderr
        assert "belongs to uid 61234" in done.stderr
        assert not (trap.folder / "i").exists()
    with pytest.raises(UsageError):
        owner.judge(str(python), ())
    done = hook(
        *("install", "npd", "--into", str(trap.folder / "i"), "--python", str(python)),
        *("--trust-owner", str(MALLORY)),
    )
    assert done.returncode == 0, "the administrator has named the account"


@pytest.mark.parametrize("shell", SHELLS)
def test_an_interpreter_that_was_given_away_since_is_not_started(trap: Trap, shell: str) -> None:
    def change_file(python: Path) -> None:
        os.chown(python, MALLORY, MALLORY)

    def change_mode(python: Path) -> None:
        python.chmod(0o775)

    def change_folder(python: Path) -> None:
        python.parent.chmod(0o777)

    def change_package(python: Path) -> None:
        (python.parent.parent / "lib/python3.11/site-packages/x.pth").chmod(0o666)

    def change_link(python: Path) -> None:
        python.rename(trap.home / "python")
        python.symlink_to(trap.home / "python")

    for number, change in enumerate(
        (None, change_file, change_mode, change_folder, change_package, change_link)
    ):
        venv = trap.folder / f"venv{number}"
        (venv / "bin").mkdir(parents=True)
        site = venv / "lib/python3.11/site-packages"
        site.mkdir(parents=True)
        (site / "x.pth").write_text("")
        python = venv / "bin" / "python"
        python.write_text(f"#!/bin/sh\n{VERDICT}echo ran; say block $t; exit 1\n")
        python.chmod(0o755)
        path = script(trap, "slurm-prolog", "", python=python)
        if change is not None:
            change(python)
        done = start(path, shell)
        expected = (1, "ran\n") if change is None else (0, "")
        assert (done.returncode, done.stdout) == expected, change
        assert (trust.why_not(str(python)) == "") is (change is None), change
    count = trap.folder / "run" / "fail-open" / "untrusted-interpreter"
    assert count.stat().st_size == 5


def test_the_gate_itself_looks_at_what_it_imports_from(trap: Trap) -> None:
    """Without the script: a folder of somebody else on the interpreter's path."""
    code = (
        "import sys; sys.path.append(sys.argv.pop(1)); sys.argv[0] = 'dsdoctor'\n"
        "from dsdoctor.__main__ import main; sys.exit(main())"
    )
    argv = ["hook", "nagios", "--run-folder", str(trap.folder / "run")]
    done = subprocess.run(
        [sys.executable, "-I", "-c", code, str(trap.home), *argv],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 3
    assert "root must not run" in done.stdout
    assert "belongs to uid 61234" in done.stdout


# ---- a sick doctor -----------------------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("blocks", [0, 1])
def test_a_limit_on_the_size_of_files_ends_no_script(trap: Trap, shell: str, blocks: int) -> None:
    """A shell that SIGXFSZ ends has a status, for which Slurm drains the node."""
    path = script(trap, "slurm-prolog", "exit 0")
    done = subprocess.run(
        [shell, "-c", f"ulimit -f {blocks}; exec {shell} {path}"],
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    "body",
    [
        "exit 1",
        "exit 2",
        "echo Traceback; exit 1",
        "say block $t; exit 1",  # a word, but not that of a faulty node
        "exit 0",  # nothing was said: not even `healthy` is believed
        "kill -KILL $$",
        "ulimit -v 1000; exec python3 -c 'import json'",
    ],
)
def test_a_monitor_never_hears_a_problem_from_a_doctor_that_is_ill(
    trap: Trap, shell: str, body: str
) -> None:
    npd = start(script(trap, "npd", body), shell)
    assert npd.returncode == 2
    assert npd.stdout.startswith("dsdoctor: inconclusive (")
    nagios = start(script(trap, "nagios", body), shell)
    assert nagios.returncode == 3
    assert nagios.stdout.startswith("DSDOCTOR UNKNOWN - inconclusive (")


FAULTY = 'printf \'{"verdict": "faulty", "token": "%s"}\\n\' "$t" >"$f"; echo GPU lost'


@pytest.mark.parametrize("shell", SHELLS)
def test_a_verdict_reaches_the_monitor(trap: Trap, shell: str) -> None:
    npd = start(script(trap, "npd", f"{FAULTY}; exit 1"), shell)
    assert (npd.returncode, npd.stdout) == (1, "GPU lost\n")
    nagios = start(script(trap, "nagios", f"{FAULTY}; exit 2"), shell)
    assert (nagios.returncode, nagios.stdout) == (2, "GPU lost\n")
    other = FAULTY.replace("$t", "of-another-run")
    assert start(script(trap, "npd", f"{other}; exit 1"), shell).returncode == 2


@pytest.mark.parametrize(
    ("shell", "kind", "status"),
    [
        (shell, kind, status)
        for shell in SHELLS
        for kind, status in (("slurm-task-prolog", 0), ("npd", 2), ("nagios", 3))
        if shell != "bash" or kind == "nagios"  # bash tries for 15 s before it gives up
    ],
)
def test_a_shell_that_cannot_fork_ends_with_what_lets_pass(
    trap: Trap, shell: str, kind: str, status: int
) -> None:
    def no_more_processes() -> None:
        os.setgroups([])
        os.setgid(MALLORY)
        os.setuid(MALLORY)
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))

    done = start(script(trap, kind, "exit 1"), shell, no_more_processes)
    assert done.returncode == status, done


@pytest.mark.parametrize(("kind", "status"), [("npd", 2), ("nagios", 3)])
@pytest.mark.parametrize("argv", [("--bogus",), ("--budget", "soon"), ("--budget=0",), ("extra",)])
def test_misuse_is_not_a_verdict(kind: str, status: int, argv: tuple[str, ...]) -> None:
    done = hook(kind, *argv)
    assert done.returncode == status
    assert "Traceback" not in done.stderr
    if kind == "nagios":
        assert done.stdout.startswith("DSDOCTOR UNKNOWN")


@pytest.mark.parametrize("kind", ["npd", "nagios", "slurm-prolog"])
@pytest.mark.parametrize("stream", ["closed", "full"])
def test_a_stdout_that_takes_nothing_changes_no_status(trap: Trap, kind: str, stream: str) -> None:
    to = ">&-" if stream == "closed" else ">/dev/full"
    run = trap.folder / "run"
    argv = [sys.executable, "-I", "-m", "dsdoctor", "hook", kind, "--run-folder", str(run)]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {to}', "sh", *argv], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


# ---- what a killed script leaves ---------------------------------------------------------------


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("kind", ["slurm-prolog", "slurm-task-prolog"])
def test_a_killed_script_leaves_nothing_that_the_next_one_does_not_remove(
    trap: Trap, shell: str, kind: str
) -> None:
    body = f"echo $$ >{trap.folder}/child; exec sleep 300"
    path = script(trap, kind, body)
    path.write_text(path.read_text().replace("/tmp/dsdoctor.", f"{trap.folder}/dsdoctor."))
    process = subprocess.Popen([shutil.which(shell) or shell, str(path)], env={}, cwd="/")
    pid = trap.folder / "child"
    deadline = time.monotonic() + 200
    while not (pid.exists() and pid.read_text()) and time.monotonic() < deadline:
        time.sleep(0.01)

    def folders() -> list[Path]:
        return [*trap.folder.glob("dsdoctor.*"), *(trap.folder / "run").glob("run.*")]

    process.kill()
    process.wait()
    assert len(folders()) == 1
    # its guard ends what the script had started
    while Path("/proc", pid.read_text().strip()).exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not Path("/proc", pid.read_text().strip()).exists()
    (trap.folder / "bin" / "python").write_text(f"#!/bin/sh\n{VERDICT}say pass $t\n")
    assert start(path, shell).returncode == 0
    assert folders() == []


# ---- whose configuration -----------------------------------------------------------------------

WEAK = "ignore = ['gpu', 'driver']\n[hook]\ndry_run = true\nignore = ['topology']\n"


def configured(monkeypatch: pytest.MonkeyPatch, path: Path, uid: int, **more: Any) -> Request:
    """What a gate makes of the file that `DSDOCTOR_CONFIG` names; `uid` asks."""
    monkeypatch.setenv("DSDOCTOR_CONFIG", str(path))
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    return entry._configured(Request("slurm-task-prolog", **more))


@pytest.mark.parametrize("uid", [0, MALLORY])
@pytest.mark.parametrize("more", [{"enforce": True}, {"fail_closed": True}])
def test_the_configuration_of_a_user_does_not_weaken_an_enforced_gate(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, uid: int, more: dict[str, Any]
) -> None:
    found = configured(monkeypatch, trap.file("c.toml", WEAK), uid, **more)
    assert (found.dry_run, found.ignore) == (False, ())
    assert "`DSDOCTOR_CONFIG` is ignored: " in found.problems[0]
    system = trap.folder / "system.toml"
    system.write_text("[hook]\nfail_closed = true\n")
    monkeypatch.setattr(entry, "SYSTEM_CONFIG", system)
    found = configured(monkeypatch, trap.home / "c.toml", MALLORY)
    assert (found.fail_closed, found.dry_run, found.ignore) == (True, False, ())


def test_the_configuration_of_a_user_counts_where_nothing_is_enforced(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = configured(monkeypatch, trap.file("c.toml", WEAK), MALLORY)
    assert (found.dry_run, found.ignore) == (True, ("gpu", "driver", "topology"))
    roots = trap.folder / "c.toml"
    roots.write_text(WEAK)
    found = configured(monkeypatch, roots, 0, enforce=True)
    assert found.dry_run, "what root has written counts"
    roots.chmod(0o666)
    assert not configured(monkeypatch, roots, 0).dry_run
    fifo = trap.folder / "fifo"
    os.mkfifo(fifo)
    assert "not a regular file" in configured(monkeypatch, fifo, 0).problems[0]
