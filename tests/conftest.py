"""What holds for the whole suite."""

from __future__ import annotations

import os
import signal

import pytest

# A shell that starts the suite in the background has Ctrl-C ignored, and programs inherit that:
# the tests that send one would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """In CI a test that was skipped is a proof that is missing: the run fails.

    Marks that a machine cannot serve are left out by name instead, in `tests/run.sh`.
    """
    if os.environ.get("CI", "0") in ("", "0"):
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped and session.exitstatus == pytest.ExitCode.OK:
        reporter.write_line(f"\n{len(skipped)} skipped in CI, where nothing may be", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
