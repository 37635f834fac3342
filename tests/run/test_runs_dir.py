"""`--runs-dir`: runs in another folder."""

from __future__ import annotations

import re
import shlex
import sys
from pathlib import Path

import pytest

from tests.run.support import run

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="watching needs Linux")


def test_the_command_that_it_prints_finds_a_run_in_another_folder(tmp_path: Path) -> None:
    other = tmp_path / "other runs"
    died = run(tmp_path, "--runs-dir", str(other), "--preflight", "off", "--", "sh", "-c", "exit 7")
    words = re.findall(r"for details, run `dsdoctor run (.+)`", died.stderr)
    shown = run(tmp_path, *shlex.split(words[0]))
    assert (shown.returncode, "exited with status 7" in shown.stdout) == (0, True), shown.stderr
    (saved,) = other.iterdir()
    listed = run(tmp_path, "list", "--runs-dir", str(other))
    assert saved.name in listed.stdout
    assert saved.name in run(tmp_path, "show", "last", "--runs-dir", str(other)).stdout
