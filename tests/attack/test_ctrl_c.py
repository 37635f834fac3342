"""Ctrl-C ends a command: it is no verdict, and nothing follows from what was not read."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.command import clean_environment

pytestmark = pytest.mark.any_user

#: A pack whose probe says that the machine is being read, and does not end.
PACK = '''"""The licence server does not answer.

## Why it matters
Nothing starts.
"""
import time
from collections.abc import Iterator
from pathlib import Path

from dsdoctor.api import Condition, Fact, Finding, Host, Scope, check, fail, probe

CONDITION = Condition("acme-licence", id="ACME001", scope=Scope.NODE, since="1.0")


class AcmeLicence(Fact, frozen=True, kw_only=True):
    """The licence."""

    answers: bool


@probe
def licence(host: Host) -> AcmeLicence:
    Path({reading!r}).touch()
    time.sleep(600)
    return AcmeLicence(answers=True)


@check(CONDITION)
def answers(licence: AcmeLicence) -> Iterator[Finding]:
    if not licence.answers:
        yield fail("no answer", effect="nothing starts", hint="ask")
'''


def interrupted(tmp_path: Path, *argv: str) -> tuple[int, str]:
    """How a command ends that gets Ctrl-C while it reads the machine, and what it printed."""
    reading = tmp_path / "reading"
    checks = tmp_path / "config/dsdoctor/checks.d"
    checks.mkdir(parents=True)
    (checks / "acme_licence.py").write_text(PACK.format(reading=str(reading)))
    env = clean_environment(tmp_path, XDG_CONFIG_HOME=str(tmp_path / "config"))
    child = subprocess.Popen(
        [sys.executable, "-m", *argv], env=env, cwd=tmp_path, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    deadline = time.monotonic() + 300
    while not reading.exists() and child.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    assert reading.exists(), child.communicate(timeout=60)
    child.send_signal(signal.SIGINT)
    said, _ = child.communicate(timeout=300)
    return child.returncode, said


@pytest.mark.parametrize(
    "argv",
    [
        ("dsdoctor", "fix", "--dry-run"),
        ("dsdoctor", "fix", "--yes"),
        ("dsdoctor.preflight", "--", sys.executable, "-c", "print('started')"),
    ],
    ids=" ".join,
)
def test_nothing_follows_from_what_was_not_read(tmp_path: Path, argv: tuple[str, ...]) -> None:
    status, said = interrupted(tmp_path, *argv)
    assert status == 130, said
    assert "nothing to do" not in said
    assert "started" not in said


def test_a_check_reports_what_it_had_read(tmp_path: Path) -> None:
    status, said = interrupted(tmp_path, "dsdoctor", "check", "--quick")
    assert status == 130
    assert "interrupted: this report is partial" in said


#: Imports the program as its script does, with Ctrl-C while the first module is loaded.
SLOW = """
import os, signal, sys
sys.argv = ["/usr/bin/dsdoctor", *{argv!r}]
class Slow:
    def find_spec(self, name, path=None, target=None):
        if name in {modules!r}:
            os.kill(os.getpid(), signal.SIGINT)
sys.modules.pop("dsdoctor", None)
import dsdoctor
sys.modules.pop("dsdoctor.version", None)
sys.meta_path.insert(0, Slow())
from dsdoctor.__main__ import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("argv", "modules"),
    [
        (["explain", "DSD101"], ("dsdoctor.guard", "dsdoctor.version")),
        (["explain", "DSD101"], ("dsdoctor.cli.main",)),
        (["hook", "nagios"], ("dsdoctor.hook.entry",)),
    ],
)
def test_while_it_is_loaded_it_is_a_signal_not_a_traceback(
    tmp_path: Path, argv: list[str], modules: tuple[str, ...]
) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SLOW.format(argv=argv, modules=modules)],
        env=clean_environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "", "")


def test_who_imports_the_module_keeps_ctrl_c(tmp_path: Path) -> None:
    code = (
        "import signal, dsdoctor.__main__; print(signal.getsignal(2) is signal.default_int_handler)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=clean_environment(tmp_path), capture_output=True, text=True, check=False, timeout=500,
    )  # fmt: skip
    assert done.stdout == "True\n"
