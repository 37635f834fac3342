"""What holds for the whole suite."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

from tests.support.collection import lost
from tests.support.row_ids import NoWordsError, words_of

# How long one example takes is the machine's load, not the code's
settings.register_profile("suite", deadline=None)
settings.load_profile("suite")

# A shell that starts the suite in the background has Ctrl-C ignored, `nohup` a hang-up, and
# programs inherit that: the tests that send one would wait for nothing.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGHUP, signal.SIG_DFL)


_collected: dict[Path, set[str]] = {}
_skipped: set[str] = set()


def pytest_itemcollected(item: pytest.Item) -> None:
    """Notes every test before `-m` and `-k` leave some out."""
    classes = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    name = getattr(item, "originalname", item.name)
    _collected.setdefault(item.path, set()).add(".".join([*classes, name]))


def pytest_make_parametrize_id(val: object, argname: str) -> str | None:
    """Rows that have no id of their own are named by what is in them."""
    try:
        return words_of(val)
    except NoWordsError as error:
        wanted = f'a row of `{argname}` needs a name: `pytest.param(..., id="...")`'
        raise pytest.Collector.CollectError(f"{error}; {wanted}") from error


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Notes modules that skip themselves, which CI counts as failures."""
    if report.skipped:
        _skipped.add(report.nodeid)


def pytest_collection_finish(session: pytest.Session) -> None:
    """No test is lost in silence: what stands in the files that were asked for was collected."""
    options = session.config.option
    if session.testsfailed or getattr(options, "lf", False):
        return
    root = session.config.rootpath
    left_out = {Path(path).absolute() for path in options.ignore or ()}
    left_out |= {root / nodeid for nodeid in _skipped}
    asked = [Path(argument).absolute() for argument in session.config.args if "::" not in argument]
    if not all(path.exists() for path in asked):
        return  # pytest collects nothing then, and names the path itself
    found = []
    for line in lost(root, asked, _collected):
        path = root / line.partition(":")[0]
        if not left_out.intersection([path, *path.parents]):
            found.append(line)
    if found:
        raise pytest.UsageError(
            f"{len(found)} tests stand in files and were not collected, first: {found[0]}"
        )


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Shows why a test that passed when it was tried again had failed: that is a bug to fix."""
    for report in terminalreporter.getreports("rerun"):
        terminalreporter.section(f"first try of {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)


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
