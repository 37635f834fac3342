"""A number that has passed on to another process is not signalled.

Each program runs in a pid namespace of its own, where `ns_last_pid` says which number comes next.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from dsdoctor import process
from dsdoctor.hook.wrapper import Wrapper

SHELLS = [name for name in ("dash", "bash") if shutil.which(name)]
ROOT = Path(__file__).parent.parent.parent
_BEGIN = """
    import contextlib, os, signal, subprocess, sys, time
    from pathlib import Path
    from dsdoctor import process

    def recycle(number):
        '''Another process with that number, in a group of its own; None if it is still taken.'''
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(number - 1))
        made = subprocess.Popen(["sleep", "60"], start_new_session=True)
        return made if made.pid == number else None

    def is_alive(one):
        time.sleep(0.2)
        return one.poll() is None
"""


def in_namespace(program: str) -> None:
    text = textwrap.dedent(_BEGIN) + textwrap.dedent(program)
    done = subprocess.run(
        ["unshare", "--pid", "--fork", "--kill-child", "--mount-proc", sys.executable, "-c", text],
        cwd=ROOT, capture_output=True, text=True, timeout=500, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_a_number_that_passes_on_between_the_look_and_the_signal() -> None:
    in_namespace("""
        meant = subprocess.Popen(["sleep", "60"])
        others = []

        def look(pid):
            meant.kill()
            meant.wait()
            others.append(recycle(pid))
            return True

        assert not process.signal_one(meant.pid, signal.SIGKILL, look)
        assert others[0] is not None, "the number was not recycled, so nothing is shown"
        assert is_alive(others[0])
    """)


def test_a_number_that_had_passed_on_before_the_look() -> None:
    in_namespace("""
        meant = subprocess.Popen(["true"], env=process.marked())
        meant.wait()
        other = recycle(meant.pid)
        assert other is not None
        assert not process.signal_one(other.pid, signal.SIGKILL, process.carries_marker)
        assert is_alive(other)
    """)


@pytest.mark.parametrize("end", ["kill()", "wait(0.0)", "wait(5.0)"])
def test_the_group_of_a_child_that_has_ended(end: str) -> None:
    """Its number stays taken until its group was killed; afterwards nobody signals it."""
    in_namespace(f"""
        child = process.Child(["true"])
        while child.follow(0.1) is None:
            pass
        first = recycle(child.pid)
        child.{end}
        second = recycle(child.pid)
        assert second is not None, "it was waited for in the end"
        child.kill()
        process.kill_all()
        assert first is None or is_alive(first)
        assert is_alive(second)
    """)


def test_a_job_that_has_ended_gets_no_signals() -> None:
    in_namespace("""
        null = os.open(os.devnull, os.O_RDWR)
        job = process.start_attached(["true"], stdin=null, stdout=null, stderr=null, env={})
        while job.wait(0.1) is None:
            pass
        other = recycle(job.pid)
        assert other is not None
        job.signal_group(signal.SIGKILL)
        assert is_alive(other)
    """)


def test_the_guard_of_a_run_that_was_killed() -> None:
    in_namespace("""
        from dsdoctor.probes.children import guard
        needle = b"DSDOCTOR_RUN=x"
        meant = subprocess.Popen(["sleep", "60"], env={"DSDOCTOR_RUN": "x", "PATH": "/usr/bin:/bin"})
        while guard.marked(needle) != [meant.pid]:  # its environment is there a moment after exec
            assert meant.poll() is None
        meant.kill()
        meant.wait()
        other = recycle(meant.pid)
        assert other is not None
        guard.kill(meant.pid, needle)
        assert is_alive(other)
    """)


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("end", ["itself", "signal"])
def test_the_scripts_of_hooks(tmp_path: Path, shell: str, end: str) -> None:
    """What the script has started ends early, and its numbers pass on to others."""
    stand_in = tmp_path / "python"
    stand_in.write_text(
        f"#!/bin/sh\ntrap 'exit 1' TERM\necho $$ >{tmp_path}/written\n"
        f"mkfifo {tmp_path}/go\nmv {tmp_path}/written {tmp_path}/begun\n"
        f"read -r _ <{tmp_path}/go\nexit 0\n"
    )
    stand_in.chmod(0o755)
    script = tmp_path / "hook.sh"
    text = Wrapper("slurm-prolog", str(stand_in), budget=30, run_folder=str(tmp_path / "run"))
    script.write_text(text.render().replace("/bin/sh -c", f"{shell} -c"))
    in_namespace(f"""
        folder = Path({str(tmp_path)!r})
        hook = subprocess.Popen([{shell!r}, str(folder / "hook.sh")], cwd="/")
        while not (folder / "begun").exists():
            time.sleep(0.02)
        main = int((folder / "begun").read_text())

        def parent(pid):
            return int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])

        spared = {{1, hook.pid, main, parent(main)}}

        def others():
            for path in Path("/proc").glob("[0-9]*"):
                pid = int(path.name)
                try:
                    if pid not in spared and parent(pid) != main:
                        yield pid
                except OSError:
                    pass

        while len(meant := list(others())) < 2:
            time.sleep(0.02)
        for pid in meant:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in meant:
            while os.path.exists(f"/proc/{{pid}}"):
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(pid, os.WNOHANG)
                time.sleep(0.01)
        passed_on = [made for pid in meant if (made := recycle(pid)) is not None]
        assert passed_on, "no number was recycled, so nothing is shown"
        if {end!r} == "signal":
            hook.send_signal(signal.SIGTERM)
        else:
            (folder / "go").write_text("\\n")
        hook.wait()
        time.sleep(0.5)
        assert all(made.poll() is None for made in passed_on)
    """)


@pytest.mark.any_user
@pytest.mark.parametrize("missing", ["function", "system call"])
def test_without_descriptors_of_processes_the_number_is_used(
    monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    def refuse(_pid: int) -> int:
        raise OSError(38, "Function not implemented")

    child = subprocess.Popen(["sleep", "60"], env=process.marked())
    with monkeypatch.context() as patch:  # Python 3.15 waits by such a descriptor itself
        if missing == "function":
            patch.delattr(os, "pidfd_open", raising=False)
        else:
            patch.setattr(os, "pidfd_open", refuse, raising=False)
        assert not process.signal_one(child.pid, 9, lambda _: False)
        assert child.poll() is None
        assert process.signal_one(child.pid, 9, lambda _: True)
    assert child.wait(200) == -9


@pytest.mark.any_user
@pytest.mark.parametrize("pid", [0, -1, 2**70])
def test_groups_and_impossible_numbers_are_refused(pid: int) -> None:
    assert not process.signal_one(pid, 0, lambda _: True)
