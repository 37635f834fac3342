"""`hook uninstall` refuses while PBS, LSF or Grid Engine still refers to the scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.hook import in_use, schedulers
from dsdoctor.hook.wrapper import MARK


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The scripts' folder; no scheduler is on PATH, and none has files."""
    (tmp_path / "bin").mkdir()
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    monkeypatch.setenv("PBS_CONF_FILE", str(tmp_path / "pbs.conf"))
    monkeypatch.setenv("LSF_ENVDIR", str(tmp_path))
    monkeypatch.delenv("SGE_ROOT", raising=False)
    return tmp_path / "into"


def program(folder: Path, name: str, body: str) -> None:
    path = folder.parent / "bin" / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


def refusal(target: str, folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        in_use.refuse_if_used(target, folder)
    return str(caught.value)


@pytest.mark.parametrize("target", sorted(schedulers.FILES))
def test_nothing_is_refused_where_there_is_no_scheduler(target: str, folder: Path) -> None:
    in_use.refuse_if_used(target, folder)


def test_a_hook_of_pbs_that_calls_the_script(folder: Path) -> None:
    listed = r"printf 'Hook other\n    type = site\nHook gate\n    type = site\n'"
    script = f"subprocess.Popen(['{folder}/prologue.sh'])"
    program(
        folder,
        "qmgr",
        f'case $2 in "list hook") {listed} ;; "export hook gate "*) echo "{script}" ;; esac',
    )
    assert refusal("pbs", folder) == (
        f"hook gate still refers to `{folder}`, and each job then passes without a check; delete the hook "
        '(`qmgr -c "delete hook NAME"`) or remove the prologue, then uninstall'
    )


def test_pbs_files_where_its_server_does_not_answer(folder: Path) -> None:
    home = folder.parent / "home"
    (folder.parent / "pbs.conf").write_text(f"PBS_EXEC=/opt/pbs\nPBS_HOME={home}\n")
    hook = home / "mom_priv" / "hooks" / "gate.PY"
    hook.parent.mkdir(parents=True)
    hook.write_text(f"subprocess.Popen(['{folder}/prologue.sh'])\n")
    program(folder, "qmgr", "exit 1")
    assert f"`{hook}`" in refusal("pbs", folder)
    hook.unlink()
    in_use.refuse_if_used("pbs", folder)


def test_a_prologue_that_is_a_copy_of_the_script(folder: Path) -> None:
    home = folder.parent / "home"
    (folder.parent / "pbs.conf").write_text(f"PBS_HOME={home}\n")
    (home / "mom_priv").mkdir(parents=True)
    (home / "mom_priv" / "prologue").write_text(f"#!/bin/sh\n# {MARK} (dsdoctor 0.1)\n")
    program(folder, "qmgr", "exit 0")
    assert "mom_priv/prologue" in refusal("pbs", folder)


def test_a_queue_of_lsf(folder: Path) -> None:
    program(folder, "bqueues", f"echo 'HOST_PRE_EXEC:  {folder}/pre-exec.sh'")
    assert refusal("lsf", folder).startswith("HOST_PRE_EXEC (`bqueues -l`) still refers to")
    program(folder, "bqueues", "echo 'HOST_PRE_EXEC:  /site/pre'")
    in_use.refuse_if_used("lsf", folder)


def test_lsf_files_where_it_does_not_answer(folder: Path) -> None:
    (folder.parent / "lsf.conf").write_text(f'LSB_CONFDIR="{folder.parent}/lsbatch"\n')
    file = folder.parent / "lsbatch" / "hpc" / "configdir" / "lsb.applications"
    file.parent.mkdir(parents=True)
    file.write_text(f"#HOST_PRE_EXEC = {folder}/pre-exec.sh\n")
    in_use.refuse_if_used("lsf", folder)
    file.write_text(f"HOST_PRE_EXEC = {folder}/pre-exec.sh\n")
    assert f"HOST_PRE_EXEC (`{file}`)" in refusal("lsf", folder)


def test_a_queue_of_grid_engine(folder: Path) -> None:
    program(
        folder,
        "qconf",
        f"case $1 in -sql) echo all.q gpu.q ;; -sconf) echo 'prolog none' ;; "
        f"-sq) [ $2 = gpu.q ] && echo 'prolog                root@{folder}/prolog.sh' || : ;; esac",
    )
    assert refusal("sge", folder).startswith("prolog of queue gpu.q still refers to")


def test_grid_engines_files_where_it_does_not_answer(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SGE_ROOT", str(folder.parent / "sge"))
    file = folder.parent / "sge" / "default" / "common" / "configuration"
    file.parent.mkdir(parents=True)
    file.write_text(f"prolog {folder}/prolog.sh\n")
    assert f"prolog (`{file}`)" in refusal("sge", folder)


def test_uninstall_asks_and_can_be_forced(folder: Path) -> None:
    def dsdoctor(*argv: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "dsdoctor", "hook", *argv, "--into", str(folder)],
            env=dict(os.environ),
            capture_output=True,
            text=True,
            timeout=300,
            check=False,
        )

    assert dsdoctor("install", "lsf").returncode == 0
    program(folder, "bapp", f"echo 'HOST_PRE_EXEC: {folder}/pre-exec.sh'")
    refused = dsdoctor("uninstall", "lsf")
    assert (refused.returncode, len(refused.stderr.splitlines())) == (2, 1)
    assert (folder / "pre-exec.sh").exists()
    assert dsdoctor("uninstall", "lsf", "--force").returncode == 0
    assert not folder.exists()
