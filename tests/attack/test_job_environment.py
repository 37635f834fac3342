"""What the environment of a job can do to root's script under LSF and Grid Engine."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.hook import entry, gatelog, rundir, schedulers
from dsdoctor.hook.install import InstallOptions
from dsdoctor.hook.request import Request
from tests.attack.conftest import MALLORY, Trap
from tests.hook.test_wrapper import SHELLS, VERDICT

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="schedulers, /proc")

KINDS = {"lsf-pre-exec": {"LSB_JOBID": "7"}, "sge-prolog": {"JOB_ID": "7", "SGE_HGR_gpu": "0 1"}}
#: Commands of the script, and words of the shell that a function might replace.
COMMANDS = (
    "[", "cat", "command", "date", "echo", "eval", "exec", "exit", "export", "find", "id", "kill",
    "ls", "mkdir", "mkfifo", "mktemp", "printf", "read", "readlink", "rm", "set", "setsid",
    "shift", "sleep", "test", "trap", "umask", "wait",
)  # fmt: skip


def interpreter(trap: Trap, body: str) -> Path:
    """A stand-in whose prefix, the folder above its own, is root's alone: a `pyvenv.cfg` counts."""
    python = trap.folder / "env" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(f"#!/bin/sh\n{VERDICT}{body}\n")
    python.chmod(0o755)
    return python


def script(trap: Trap, kind: str, shell: str, body: str, *, fail_closed: bool = False) -> list[str]:
    """The installed script with a stand-in for the interpreter, and how `#!/bin/sh` starts it."""
    python = interpreter(trap, body)
    options = InstallOptions(
        into=trap.folder, python=str(python), budget=60, run_folder=str(trap.folder / "run"),
        fail_closed=fail_closed,
    )  # fmt: skip
    # bash behaves as /bin/sh only under that name
    place = trap.folder / "shell"
    place.mkdir(exist_ok=True)
    sh = place / "sh"
    sh.unlink(missing_ok=True)
    sh.symlink_to(shutil.which(shell) or shell)
    path = trap.folder / "hook.sh"
    path.write_text(schedulers.script(kind, options).replace('/bin/sh "$0"', f'{sh} "$0"'))
    path.chmod(0o755)
    return [str(sh), str(path)]


def call(argv: list[str], env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv, env=env, capture_output=True, text=True, timeout=500, check=False, cwd="/"
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("shell", SHELLS)
def test_a_job_s_functions_and_variables_do_not_reach_root(
    trap: Trap, shell: str, kind: str
) -> None:
    seen, ran = trap.folder / "seen", trap.folder / "ran"
    evil = {
        **{f"BASH_FUNC_{name}%%": f"() {{ : >{ran}; }}" for name in COMMANDS},
        **dict.fromkeys(("LD_LIBRARY_PATH", "PYTHONPATH", "HOME", "XDG_STATE_HOME", "TMPDIR",
                         "DSDOCTOR_CONFIG", "DSDOCTOR_RUN_FOLDER", "SLURMD_NODENAME", "NODE_NAME",
                         "CUDA_HOME", "VIRTUAL_ENV", "BASH_ENV", "ENV"), str(trap.home)),
        "CUDA_VISIBLE_DEVICES": "1; : >" + str(ran),
        **KINDS[kind],
    }  # fmt: skip
    argv = script(trap, kind, shell, f"env >{seen}\nsay block $t; exit 1")
    done = call(argv, evil)
    assert (done.returncode, ran.exists()) == (1, False), done
    found = dict(line.partition("=")[::2] for line in seen.read_text().splitlines())
    for name in ("LD_LIBRARY_PATH", "HOME", "DSDOCTOR_CONFIG", "SLURMD_NODENAME", "XDG_STATE_HOME"):
        assert name not in found
    for name in ("CUDA_VISIBLE_DEVICES", *KINDS[kind]):
        assert found[name] == evil[name]
    assert [row["job"] for row in gatelog.read(trap.folder / "run")] == ["7", "7"]


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(("fail_closed", "status"), [(False, 0), (True, 1)])
def test_without_env_the_script_decides_as_without_an_interpreter(
    trap: Trap, shell: str, fail_closed: bool, status: int
) -> None:
    argv = script(trap, "sge-prolog", shell, "exit 1", fail_closed=fail_closed)
    path = Path(argv[1])
    path.write_text(path.read_text().replace("/usr/bin/env", "/nowhere/env"))
    assert call(argv, KINDS["sge-prolog"]).returncode == status


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("name", ["n1 decision=block", "n1\ntime=1 event=end hook=x", "a[$(id)]"])
def test_a_node_s_name_begins_no_other_word_in_the_log(trap: Trap, shell: str, name: str) -> None:
    from dsdoctor.hook.wrapper import Wrapper

    python = interpreter(trap, "exit 0")
    path = trap.folder / "hook.sh"
    run = trap.folder / "run"
    path.write_text(Wrapper("slurm-prolog", str(python), budget=60, run_folder=str(run)).render())
    call([shutil.which(shell) or shell, str(path)], {"SLURMD_NODENAME": name})
    rows = gatelog.read(run)
    assert [row["event"] for row in rows] == ["begin", "end"]
    assert [row.get("node", "") for row in rows] == ["", ""]
    assert rows[1]["decision"] == "pass"
    gatelog.write(run, event="end", hook="npd", node=name, decision="pass")
    assert len(gatelog.read(run)) == 3
    assert gatelog.read(run)[2]["decision"] == "pass"


WEAK = "[hook]\ndry_run = true\n"


def settled(monkeypatch: pytest.MonkeyPatch, path: Path, kind: str, **more: Any) -> Request:
    monkeypatch.setenv("DSDOCTOR_CONFIG", str(path))
    return entry._configured(Request(kind, **more))


@pytest.mark.parametrize("uid", [0, MALLORY])
def test_a_job_cannot_name_an_empty_file_of_root_as_the_configuration(
    trap: Trap, monkeypatch: pytest.MonkeyPatch, uid: int
) -> None:
    system, empty = trap.folder / "system.toml", trap.folder / "empty"
    system.write_text("[hook]\nfail_closed = true\n")
    empty.touch()
    monkeypatch.setattr(entry, "SYSTEM_CONFIG", system)
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    for kind in ("lsf-pre-exec", "sge-prolog", "slurm-task-prolog", "k8s"):
        assert settled(monkeypatch, empty, kind).fail_closed, kind
    assert not settled(monkeypatch, empty, "slurm-prolog").fail_closed, "its environment is Slurm's"


def test_root_takes_neither_settings_nor_a_folder_from_a_job(
    trap: Trap, monkeypatch: pytest.MonkeyPatch
) -> None:
    weak = trap.folder / "weak.toml"
    weak.write_text(WEAK)
    monkeypatch.setattr(entry, "SYSTEM_CONFIG", trap.folder / "none")
    found = settled(monkeypatch, weak, "sge-prolog")
    assert not found.dry_run
    assert "is that of the job" in found.problems[0]
    assert settled(monkeypatch, weak, "slurm-prolog").dry_run
    monkeypatch.setenv("DSDOCTOR_RUN_FOLDER", str(trap.folder / "etc"))
    assert rundir.default_path(believed=False) == Path("/run/dsdoctor")
    assert rundir.default_path() == trap.folder / "etc"
    seen: list[Path] = []

    def folder(path: Path) -> None:
        seen.append(path)
        raise rundir.RunFolderError("enough")

    monkeypatch.setattr(entry, "RunFolder", folder)
    entry._decide(Request("sge-prolog"), {}, 0.0)
    entry._decide(Request("slurm-prolog"), {}, 0.0)
    assert seen == [Path("/run/dsdoctor"), trap.folder / "etc"]
