"""What happens around a hook's decision: signals, a log that hangs, configurations of others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from types import ModuleType

import pytest

from dsdoctor.hook import entry
from dsdoctor.hook.request import Request
from tests.support.command import clean_environment

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals and syslog")

TWICE = """
import os, signal, sys, time
from dsdoctor.hook import entry
entry._handle_signals()
try:
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(60)
finally:
    os.kill(os.getpid(), signal.SIGTERM)
    print("tidied", flush=True)
"""


def test_a_second_signal_does_not_stop_the_tidying(tmp_path: Path) -> None:
    """The script of `hook install` signals its group, which may reach us more than once."""
    done = subprocess.run(
        [sys.executable, "-c", TWICE], env=clean_environment(tmp_path), capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (128 + signal.SIGTERM, "tidied\n"), done.stderr


def test_what_nohup_ignores_stays_ignored() -> None:
    kept = {name: signal.getsignal(name) for name in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)}
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        entry._handle_signals()
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
        assert signal.getsignal(signal.SIGTERM) is entry._stopped
    finally:
        for name, handler in kept.items():
            signal.signal(name, handler)


def test_a_program_may_decide_in_a_thread_of_its_own() -> None:
    """Python sets handlers in the main thread only."""
    failed: list[BaseException] = []

    def work() -> None:
        try:
            entry._handle_signals()
        except ValueError as error:
            failed.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(60)
    assert failed == []


class _Syslog(ModuleType):
    LOG_PID = LOG_DAEMON = LOG_NOTICE = 0

    def __init__(self, how: str) -> None:
        super().__init__("syslog")
        self.how = how
        self.release = threading.Event()

    def openlog(self, *_: object) -> None:
        if self.how == "hangs":
            self.release.wait(90)
        raise OSError(2, "no /dev/log")

    def syslog(self, *_: object) -> None:
        raise AssertionError


@pytest.mark.parametrize("how", ["hangs", "fails"])
def test_a_log_that_does_not_answer_is_neither_waited_for_nor_a_traceback(
    how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub = _Syslog(how)
    monkeypatch.setitem(sys.modules, "syslog", stub)
    raised: list[object] = []
    monkeypatch.setattr(threading, "excepthook", raised.append)
    begun = time.monotonic()
    entry._log("a line")
    assert time.monotonic() - begun < 60
    stub.release.set()
    for thread in threading.enumerate():
        if thread.daemon and thread is not threading.current_thread():
            thread.join(10)
    assert raised == []


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives a file to another account"
)
@pytest.mark.parametrize("whose", ["root's", "another account's"])
def test_the_systems_configuration_counts_if_it_is_roots_alone(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    system, given = tmp_path / "config.toml", tmp_path / "given.toml"
    system.write_text("[hook]\nbudget = 7\n")
    given.write_text("[hook]\nbudget = 9\n")
    os.chown(given, 61234, 61234)
    if whose != "root's":
        os.chown(system, 61234, 61234)
    monkeypatch.setattr(entry, "SYSTEM_CONFIG", system)
    monkeypatch.setattr(entry, "why_untrusted", _owner)
    for variable in ("", str(given)):
        monkeypatch.setenv("DSDOCTOR_CONFIG", variable)
        found = entry._configured(Request("npd"))
        ignored = [problem for problem in found.problems if "is ignored" in problem]
        assert (found.budget == 7) is (whose == "root's"), variable
        assert len(ignored) == (whose != "root's") + bool(variable), ignored


def _owner(path: Path, trusted: frozenset[int] = frozenset({0})) -> str:
    """Of the file alone: the folder of a test lies below one that others may write to."""
    owner = path.stat().st_uid
    return "" if owner in (trusted or {0}) else f"`{path}` belongs to uid {owner}"
