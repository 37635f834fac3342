"""A run folder of root's gate in which another account can create files."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from tests.attack.conftest import MALLORY, Trap
from tests.attack.test_hook import script
from tests.hook.test_wrapper import SHELLS


@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize("trick", ["link", "fifo"])
def test_a_run_folder_in_which_all_may_create_files(trap: Trap, shell: str, trick: str) -> None:
    """In `/tmp` itself the log of the gate may be a link, or a FIFO that nobody reads."""
    run = trap.folder / "sticky"
    run.mkdir()
    run.chmod(0o1777)
    if trick == "link":
        (run / "gate.log").symlink_to(trap.victim)
    else:
        os.mkfifo(run / "gate.log")
    trap.give(run / "gate.log")
    text = script(trap, "slurm-prolog", "say block $t; exit 1", run=run)
    done = subprocess.run(
        [shutil.which(shell) or shell, str(text)],
        env={}, capture_output=True, text=True, timeout=30, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert [path.name for path in run.iterdir()] == ["gate.log"]


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_a_run_folder_that_another_account_creates_first(trap: Trap) -> None:
    """It does not exist when it is judged, and its parent is sticky."""
    run = trap.folder / "sticky" / "run"
    run.parent.mkdir()
    run.parent.chmod(0o1777)
    faster = trap.folder / "faster"
    faster.write_text(
        f"mkdir() {{ [ -e {run} ] || {{ command mkdir {run}; ln -s {trap.victim} {run}/gate.log;"
        f' chown -h {MALLORY} {run} {run}/gate.log; }}; command mkdir "$@"; }}\n'
    )
    text = script(trap, "slurm-prolog", "say block $t; exit 1", run=run)
    done = subprocess.run(
        ["bash", str(text)],
        env={"BASH_ENV": str(faster)}, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert [path.name for path in run.iterdir()] == ["gate.log"]
