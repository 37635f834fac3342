from __future__ import annotations

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from dsdoctor.cli.hook import command
from dsdoctor.errors import UsageError
from dsdoctor.hook import install, installed, owner, site


def dsdoctor(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor", "hook", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
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
        ("install", "condor"),
        ("install", "slurm", "--python", "python3"),
        ("install", "slurm", "--image", "registry.example/job:1"),
        ("install", "pbs", "--enforce"),
        ("install", "nagios", "--reason-from-prolog"),
        ("install", "epilog", "--no-job-comment"),
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
        installed.apply(plan)


def test_an_edited_script_is_kept_beside_the_new_one(tmp_path: Path) -> None:
    into = tmp_path / "into"
    dsdoctor("install", "slurm", "--into", str(into))
    again = dsdoctor("install", "slurm", "--into", str(into))
    assert "kept your" not in again.stdout
    script = into / "prolog.sh"
    edited = script.read_text() + "# ours\n"
    script.write_text(edited)
    third = dsdoctor("install", "slurm", "--into", str(into))
    assert f"kept your edited prolog.sh as {into}/prolog.sh.edited-1" in third.stdout
    assert (into / "prolog.sh.edited-1").read_text() == edited
    assert "# ours" not in script.read_text()
    assert not list(into.glob("health.sh.edited*"))


def test_uninstall_empties_the_run_folder_and_nothing_else(tmp_path: Path) -> None:
    into, run = tmp_path / "into", tmp_path / "run"
    dsdoctor("install", "slurm", "--into", str(into), "--run-folder", str(run))
    subprocess.run([str(into / "prolog.sh")], check=True, capture_output=True, timeout=300)
    assert (run / "gate.log").exists()
    (run / "others").write_text("")
    gone = dsdoctor("uninstall", "slurm", "--into", str(into))
    assert gone.returncode == 0, gone.stderr
    assert [path.name for path in run.iterdir()] == ["others"]
    (run / "others").unlink()
    dsdoctor("install", "slurm", "--into", str(into), "--run-folder", str(run))
    (run / "fail-open").mkdir()
    assert f"removed {run}" in dsdoctor("uninstall", "slurm", "--into", str(into)).stdout
    assert not run.exists()


def test_a_run_folder_that_other_scripts_of_the_node_use_is_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A monitor beside Slurm: its log and the stamps of its drains are in the same folder."""
    run = tmp_path / "run"
    for target in ("slurm", "nagios"):
        monkeypatch.setitem(install.TARGETS, target, tmp_path / target)
        options = install.InstallOptions(tmp_path / target, sys.executable, run_folder=str(run))
        installed.apply(install.plan(target, options))
    run.mkdir()
    (run / "gate.log").write_text("")
    before = sorted(tmp_path.rglob("*"))
    listed = installed.remove("nagios", tmp_path / "nagios", dry=True)
    assert f"would remove {tmp_path / 'nagios' / 'check_dsdoctor'}" in listed
    assert sorted(tmp_path.rglob("*")) == before
    said = installed.remove("nagios", tmp_path / "nagios")
    assert len(said) >= len(listed)
    assert f"left {run}: other scripts use it" in said
    assert (run / "gate.log").exists()
    assert f"removed {run}" in installed.remove("slurm", tmp_path / "slurm")


def test_uninstall_refuses_while_slurm_names_the_scripts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "into"
    dsdoctor("install", "slurm", "--into", str(into))
    scontrol = tmp_path / "bin" / "scontrol"
    scontrol.parent.mkdir()
    scontrol.write_text(f"#!/bin/sh\necho 'Prolog                  = {into}/prolog.sh'\n")
    scontrol.chmod(0o755)
    monkeypatch.setenv("PATH", f"{scontrol.parent}:{os.environ['PATH']}")
    refused = dsdoctor("uninstall", "slurm", "--into", str(into))
    assert refused.returncode == 2
    assert "(Prolog)" in refused.stderr
    assert (into / "prolog.sh").exists()
    scontrol.write_text("#!/bin/sh\nexit 1\n")  # slurmctld is down: slurm.conf itself is read
    conf = tmp_path / "slurm.conf"
    conf.write_text(f"#Epilog=x\nTaskProlog={into}/task-prolog.sh # ours\n")
    monkeypatch.setenv("SLURM_CONF", str(conf))
    assert "(TaskProlog)" in dsdoctor("uninstall", "slurm", "--into", str(into)).stderr
    assert dsdoctor("uninstall", "slurm", "--into", str(into), "--force").returncode == 0


def test_slurms_parameters_are_judged() -> None:
    good = {
        "SLURM_VERSION": "22.05.8",
        "PrologFlags": "Alloc",
        "PrologEpilogTimeout": "60",
        "BatchStartTimeout": "10 sec",
        "SlurmdTimeout": "300 sec",
        "RebootProgram": "/sbin/reboot",
        "SchedulerParameters": "nohold_on_prolog_fail",
        "HealthCheckProgram": "/d/health.sh",
        "HealthCheckNodeState": "ANY",
    }
    assert site.slurm_notes(good, 5.0, Path("/d")) == ["Slurm 22.05.8; tested with 22.05 and 26.05"]
    for name, value, word in (
        ("PrologFlags", "(null)", "no Alloc"),
        ("PrologEpilogTimeout", "65534", "no limit ends the prolog"),
        ("PrologEpilogTimeout", "5", "drains the node first"),
        ("BatchStartTimeout", "5 sec", "lost first"),
        ("SlurmdTimeout", "5 sec", "down first"),
        ("RebootProgram", "(null)", "RebootProgram"),
        ("SchedulerParameters", "(null)", "held"),
        ("HealthCheckNodeState", "IDLE", "set ANY"),
        ("SchedulerParameters", "a=1,b", "`SchedulerParameters=a=1,b,nohold_on_prolog_fail`"),
        (
            "Prolog",
            "/x/their.sh",
            "already `/x/their.sh`: keep it, and call `/d/prolog.sh || exit 1`",
        ),
        ("HealthCheckProgram", "/x/nhc", "keep it, and call `/d/health.sh` in it"),
    ):
        (_, note) = site.slurm_notes({**good, name: value}, 5.0, Path("/d"))
        assert word in note
    assert "did not answer" in site.slurm_notes({}, 5.0, Path("/d"))[0]


def test_a_folder_of_prologs_gets_a_link(tmp_path: Path) -> None:
    """Slurm runs each script there; 26.05 lists such parameters as `Prolog[0]`."""
    theirs, ours = tmp_path / "prolog.d", tmp_path / "dsdoctor"
    for folder in (theirs, ours):
        folder.mkdir()
    (theirs / "10-site.sh").write_text("")
    (ours / "prolog.sh").write_text("")
    text = f"SLURM_VERSION           = 26.05.5\nProlog[0]               = {theirs}/*\n"
    config = site.parse_config(text)
    notes = " ".join(site.slurm_notes(config, 5.0, ours))
    assert f"Prolog is already `{theirs}/*`: keep it, and run `ln -s {ours}/prolog.sh" in notes
    (theirs / "50-dsdoctor.sh").symlink_to(ours / "prolog.sh")
    assert "already" not in " ".join(site.slurm_notes(config, 5.0, ours))
    assert site.named_by_slurm(config, ours) == ["Prolog"]
    both = site.parse_config(f"Epilog[0]   = /x.sh\nEpilog[1]   = {ours}/epilog.sh\n")
    assert both["Epilog"] == f"/x.sh,{ours}/epilog.sh"
    assert not any("already" in note for note in site.epilog_notes(both, 5.0, ours))


@pytest.mark.skipif(os.geteuid() != 0, reason="starts an interpreter as another account")
def test_an_interpreter_that_only_root_can_run(tmp_path: Path) -> None:
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    (closed / "python").write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    (closed / "python").chmod(0o755)
    assert "only root can run" in site.usable_by_users(str(closed / "python"))
    with pytest.raises(UsageError, match="cannot import dsdoctor"):
        site.usable_by_users("/bin/false")


def test_a_machine_on_which_nothing_ends_what_hangs_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    into = tmp_path / "into"
    dash, bash = shutil.which("dash"), shutil.which("bash")
    assert dash
    assert bash
    monkeypatch.setattr(site, "SCRIPT_PATH", str(tmp_path))
    monkeypatch.setattr(site, "SHELL", dash)
    with pytest.raises(UsageError, match="install util-linux"):
        command.main(["install", "nagios", "--into", str(into)], standalone_mode=False)
    assert not into.exists()
    monkeypatch.setattr(site, "SHELL", bash)
    site.require_process_groups()  # bash makes process groups itself
    (tmp_path / "setsid").write_text("#!/bin/sh\n")
    (tmp_path / "setsid").chmod(0o755)
    monkeypatch.setattr(site, "SHELL", dash)
    site.require_process_groups()


def test_a_run_folder_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for wanted in (tmp_path / "file", tmp_path / "file" / "run"):
        done = dsdoctor(
            "install", "slurm", "--into", str(tmp_path / "s"), "--run-folder", str(wanted)
        )
        assert (done.returncode, done.stderr.count("\n")) == (2, 1)
        assert f"`{tmp_path}/file` is not a folder" in done.stderr
        assert not (tmp_path / "s").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root's hooks mind who controls the folder")
@pytest.mark.parametrize(
    "foreign",
    [
        pytest.param("above/run", id="the folder itself"),
        pytest.param("above", id="the one above, where the first hook would create it"),
        pytest.param("", id="a folder of root"),
    ],
)
def test_a_run_folder_that_others_control_is_refused_to_root(foreign: str, tmp_path: Path) -> None:
    (tmp_path / "above").mkdir()
    if foreign:
        (tmp_path / foreign).mkdir(exist_ok=True)
        os.chown(tmp_path / foreign, 65534, 65534)
    into = tmp_path / "s"
    argv = ["install", "slurm", "--into", str(into), "--run-folder", str(tmp_path / "above/run")]
    done = dsdoctor(*argv)
    assert done.returncode == (2 if foreign else 0)
    assert into.exists() is not bool(foreign)
    assert ("root's hooks would refuse" in done.stderr) is bool(foreign)
    assert dsdoctor(*argv, "--trust-owner", "65534").returncode == 0


def test_whoever_is_not_root_is_warned_of_a_run_folder_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scripts may be written by another account than the one that runs them."""
    monkeypatch.setattr(owner, "is_root", lambda: False)
    (tmp_path / "run").mkdir()
    (tmp_path / "run").chmod(0o777)
    assert owner.judge_run_folder(str(tmp_path / "run"), ()).startswith("warning: a hook that root")
    (tmp_path / "run").chmod(0o755)
    assert owner.judge_run_folder(str(tmp_path / "run"), ()) == ""


def test_a_run_folder_that_nodes_share_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site, "shared", lambda path: "nfs4" if "home" in str(path) else "")
    with pytest.raises(UsageError, match="one of its own"):
        site.places(tmp_path, "/opt/python", "/home/run")
    (note,) = site.places(tmp_path, "/home/python", "/run/dsdoctor")
    assert "pass without a verdict" in note
