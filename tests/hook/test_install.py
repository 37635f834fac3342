from __future__ import annotations

import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.errors import UsageError
from dsdoctor.hook import install


def dsdoctor(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor", "hook", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("target", sorted(install.TARGETS))
def test_install_and_uninstall(tmp_path: Path, target: str) -> None:
    into = tmp_path / "into"
    shown = dsdoctor("install", target, "--into", str(into), "--dry-run")
    assert shown.returncode == 0
    assert not into.exists()
    done = dsdoctor("install", target, "--into", str(into))
    assert done.returncode == 0
    written = sorted(into.iterdir())
    assert written
    for path in written:
        assert str(path) in done.stdout
        assert f"# would write {path}" in shown.stdout
        runnable = bool(path.stat().st_mode & stat.S_IXUSR)
        assert runnable is (path.suffix == ".sh" or path.name == "check_dsdoctor")
    assert dsdoctor("install", target, "--into", str(into)).returncode == 0
    gone = dsdoctor("uninstall", target, "--into", str(into))
    assert gone.returncode == 0
    assert not into.exists()


def test_slurms_lines_are_printed_with_what_they_do(tmp_path: Path) -> None:
    out = dsdoctor("install", "slurm", "--into", str(tmp_path)).stdout
    for word in (
        f"Prolog={tmp_path}/prolog.sh",
        "PrologFlags=Alloc",
        "nohold_on_prolog_fail",
        "PrologEpilogTimeout=",
        "HealthCheckProgram=",
        "HealthCheckInterval=",
        f"TaskProlog={tmp_path}/task-prolog.sh",
        "/etc/dsdoctor/disabled",
    ):
        assert word in out


def test_files_of_others_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "prolog.sh").write_text("#!/bin/sh\nexit 0\n")
    refused = dsdoctor("install", "slurm", "--into", str(tmp_path))
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert "was not written by dsdoctor" in refused.stderr
    left = dsdoctor("uninstall", "slurm", "--into", str(tmp_path))
    assert "left" in left.stdout
    assert (tmp_path / "prolog.sh").exists()


@pytest.mark.parametrize(
    "argv",
    [
        ("install", "pbs"),
        ("install", "slurm", "--python", "python3"),
        ("install", "slurm", "--run-folder", "here"),
        ("install", "slurm", "--into", "/proc/none"),
        ("uninstall", "npd", "--into", "/nowhere"),
    ],
)
def test_misuse_is_one_line(argv: tuple[str, ...]) -> None:
    done = dsdoctor(*argv)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr


def test_reason_from_prolog_is_off_and_says_what_slurm_says(tmp_path: Path) -> None:
    plain = install.plan("slurm", install.InstallOptions(into=tmp_path, python="/p"))
    assert "reason-from-prolog" not in plain.files[tmp_path / "prolog.sh"][0]
    asked = install.plan(
        "slurm", install.InstallOptions(into=tmp_path, python="/p", reason_from_prolog=True)
    )
    assert "manual advises against" in asked.files[tmp_path / "prolog.sh"][0]


def test_a_folder_that_may_not_be_written(tmp_path: Path) -> None:
    plan = install.plan("npd", install.InstallOptions(into=Path("/dev/null/x"), python="/p"))
    with pytest.raises(UsageError, match="cannot be written"):
        install.apply(plan)
