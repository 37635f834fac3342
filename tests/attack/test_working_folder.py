"""Root, or anybody, in a folder in which another account has put modules and programs."""

from __future__ import annotations

import dataclasses
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor import process
from dsdoctor.errors import UsageError
from dsdoctor.hook import health, in_use
from dsdoctor.host import account
from dsdoctor.host.own_environment import own_environment
from dsdoctor.smoke import launcher, run
from dsdoctor.smoke.attempt import Attempt
from dsdoctor.smoke.track import Tracker
from tests.attack.conftest import Trap
from tests.support.command import clean_environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="accounts")

#: What a child of dsdoctor imports at its start.
MODULES = ("re", "json", "importlib", "msgspec", "signal", "click", "dsdoctor")


def plant(folder: Path, ran: Path) -> None:
    for name in MODULES:
        (folder / f"{name}.py").write_text(f"open({str(ran)!r}, 'a').write(__name__)\n")


@pytest.mark.parametrize("preflight", ["quick", "full"])
def test_the_preflight_check_imports_nothing_from_the_working_folder(
    trap: Trap, tmp_path: Path, preflight: str
) -> None:
    ran = trap.folder / "ran"
    plant(trap.home, ran)
    program = str(Path(sys.executable).parent / "dsdoctor")
    argv = [program, "run", "--preflight", preflight, "--runs-dir", str(tmp_path / "runs")]
    done = subprocess.run(
        [*argv, "--", "/bin/true"], env=clean_environment(tmp_path), cwd=trap.home,
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert not ran.exists(), done
    assert done.returncode in (0, 79), done


@pytest.mark.any_user
def test_a_module_of_the_doctor_starts_without_the_working_folder(tmp_path: Path) -> None:
    ran = tmp_path / "ran"
    plant(tmp_path, ran)
    done = subprocess.run(
        [*process.own_module("dsdoctor"), "--version"], cwd=tmp_path,
        env=clean_environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("dsdoctor ")
    assert not ran.exists()


@pytest.mark.any_user
def test_a_working_folder_that_was_deleted(tmp_path: Path) -> None:
    program = str(Path(sys.executable).parent / "dsdoctor")
    (tmp_path / "gone").mkdir()
    done = subprocess.run(
        ["/bin/sh", "-c", f"cd {tmp_path}/gone; rmdir ../gone; exec {program} packs"],
        env=clean_environment(tmp_path),
        capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    # the shell that the command starts with, dash, says so itself
    said = [line for line in done.stderr.splitlines() if "getcwd() failed" not in line]
    assert (done.returncode, said) == (0, []), done


@pytest.mark.parametrize("words", [["packs"], ["run", "--preflight", "quick", "--", "/bin/true"]])
def test_root_imports_nothing_from_a_kept_python_path_of_another_account(
    trap: Trap, tmp_path: Path, words: list[str]
) -> None:
    """Without the start script (`sudo -E python -m dsdoctor`), what Python itself does not import."""
    ran = trap.folder / "ran"
    plant(trap.home, ran)
    for name in ("re", "importlib", "dsdoctor"):  # the installer's script imports these
        (trap.home / f"{name}.py").unlink()
    for name in ("contextlib", "dataclasses", "pathlib", "runpy"):
        (trap.home / f"{name}.py").write_text((trap.home / "json.py").read_text())
    program = str(Path(sys.executable).parent / "dsdoctor-python")
    done = subprocess.run(
        [program, *words], env={**clean_environment(tmp_path), "PYTHONPATH": str(trap.home)},
        cwd="/", capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert not ran.exists(), done
    assert done.returncode in (0, 79), done
    assert f"root imports nothing from `{trap.home}`" in done.stderr


@pytest.mark.parametrize("words", [["packs"], ["run", "--preflight", "quick", "--", "/bin/true"]])
def test_root_s_command_starts_python_without_what_another_account_put_before_it(
    trap: Trap, tmp_path: Path, words: list[str]
) -> None:
    """`sudo -E dsdoctor`: what Python imports before dsdoctor's first line is not run either."""
    ran = trap.folder / "ran"
    plant(trap.home, ran)
    evil = (trap.home / "json.py").read_text()
    (trap.home / "sitecustomize.py").write_text(evil)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    user_site = trap.home / ".local" / "lib" / version / "site-packages"
    user_site.mkdir(parents=True)
    (user_site / "evil.pth").write_text(f"import sys; {evil}")
    (user_site / "usercustomize.py").write_text(evil)
    for path in (trap.home / ".local").rglob("*"):
        trap.give(path)
    kept = {"PYTHONPATH": str(trap.home), "HOME": str(trap.home), "PYTHONSTARTUP": str(trap.home)}
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dsdoctor"), *words],
        env={**clean_environment(tmp_path), **kept},
        cwd=trap.home, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert not ran.exists(), done
    assert done.returncode in (0, 79), done


class _Started(Exception):  # noqa: N818  # it tells, and is no error
    pass


def ranks_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Any:
    """Where smoke would start the ranks."""
    found: list[Any] = []

    def child(_argv: object, **given: Any) -> None:
        found.append(given["cwd"])
        raise _Started

    monkeypatch.setattr(process, "Child", child)

    @dataclasses.dataclass
    class Plan:
        device: str = "cpu"
        uuids: tuple[str, ...] = ()

    made: Any = Attempt(
        plan=Plan(),  # type: ignore[arg-type]
        argv=("deepspeed",), env={}, tracker=Tracker(tmp_path, 1, 1.0), folder=tmp_path,
    )  # fmt: skip
    with pytest.raises(_Started):
        launcher._run(made, {}, sys.executable, lambda *_: None)
    return found[0]


@pytest.mark.parametrize(
    ("mode", "gid", "there"),
    [(0o755, 0, None), (0o775, 0, "/"), (0o777, 0, "/"), (0o1777, 0, "/"), (0o775, 61234, "/")],
)
def test_ranks_do_not_start_as_root_where_others_may_put_modules(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mode: int, gid: int,
    there: str | None,
) -> None:  # fmt: skip
    folder = trap.folder / "work"
    folder.mkdir()
    os.chown(folder, 0, gid)
    folder.chmod(mode)
    monkeypatch.chdir(folder)
    assert ranks_folder(monkeypatch, tmp_path) == there
    monkeypatch.chdir(trap.home)
    assert ranks_folder(monkeypatch, tmp_path) == "/"


def test_on_several_nodes_root_says_so_and_starts_nothing(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    trap.file("hostfile", "n1 slots=1\nn2 slots=1\n")
    argv = ["smoke", "--hostfile", "hostfile", "--cpu", "1"]
    done = subprocess.run(
        [str(Path(sys.executable).parent / "dsdoctor"), *argv], env=clean_environment(tmp_path),
        cwd=trap.home, capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert (done.returncode, "root does not run them there" in done.stderr) == (2, True), done
    monkeypatch.chdir(trap.home)
    with pytest.raises(UsageError):
        account.refuse_foreign_folder()
    monkeypatch.setattr(account._Choice, "given", account.account_of(0))
    account.refuse_foreign_folder()


@pytest.mark.parametrize("how", ["path", "variable", "writable"])
def test_a_scheduler_s_command_of_another_account_is_not_run_as_root(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], how: str
) -> None:
    ran = trap.folder / "ran"
    for name in ("scontrol", "qmgr"):
        trap.file(f"bin/{name}", f"#!/bin/sh\necho x >{ran}\n", 0o755)
    if how == "writable":  # by everybody, though it is root's
        own = trap.folder / "bin"
        own.mkdir()
        for name in ("scontrol", "qmgr"):
            (own / name).write_text(f"#!/bin/sh\necho x >{ran}\n")
            (own / name).chmod(0o777)
        monkeypatch.setenv("PATH", str(own))
    elif how == "path":
        monkeypatch.setenv("PATH", f"{trap.home}/bin")
    else:
        monkeypatch.setenv("DSDOCTOR_SCONTROL", str(trap.home / "bin" / "scontrol"))
    health.comment_of_job("1", 5.0)
    in_use._run("qmgr", "-c", "list hook")
    assert not ran.exists()
    assert "root must not run it" in capsys.readouterr().out


def test_root_s_ranks_get_no_variable_that_leads_to_files_of_others(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    home = str(trap.home)
    for name in ("bin", "ext"):
        (trap.home / name).mkdir()
        trap.give(trap.home / name)
    given = {
        "PATH": f".::{home}/bin:/usr/bin:bin:/bin",
        "HOME": home,
        "PWD": home,
        "CXX": f"{home}/bin/g++ -O2",
        "TORCH_EXTENSIONS_DIR": f"{home}/ext/absent",
        "LDFLAGS": f"-L/usr/lib -Wl,-rpath={home}/ext",
        "NCCL_DEBUG": "INFO",
        "CUDA_HOME": "/usr",
    }
    assert own_environment(given) == {
        "PATH": "/usr/bin:/bin",
        "HOME": account.account_of(0).home,
        "NCCL_DEBUG": "INFO",
        "CUDA_HOME": "/usr",
    }
    assert "without `CXX`, `LDFLAGS`, `TORCH_EXTENSIONS_DIR`, which" in capsys.readouterr().err
    own_environment(given)
    assert capsys.readouterr().err == "", "said once"
    monkeypatch.setattr(account._Choice, "given", account.account_of(0))
    assert own_environment(given) == given, "root was asked for"
    monkeypatch.setattr(account._Choice, "given", None)
    monkeypatch.setattr(os, "geteuid", lambda: 61234)
    assert own_environment(given) == given


def test_smoke_passes_only_those_on(trap: Trap, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def attempt(*_: object, base_env: Any, **__: object) -> None:
        seen.append(base_env)
        raise _Started

    monkeypatch.setattr(run, "attempt", attempt)
    with pytest.raises(_Started):
        run.once(None, "", None, timeout=1.0, env={"CXX": f"{trap.home}/g++"})  # type: ignore[arg-type]
    assert seen == [{}]
