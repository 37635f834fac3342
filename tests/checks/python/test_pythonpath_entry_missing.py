"""pythonpath_entry_missing, and the probe below it."""

from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.probes.command_line import parse_command
from dsdoctor.probes.python_path import python_path
from dsdoctor.testing import FakeHost, judge, missing
from dsdoctor_checks.python import pythonpath_entry_missing

FILES = {"/src/pkg/__init__.py": "", "/job/lib/a.py": "", "/src/eggs.zip": ""}


@pytest.mark.parametrize(
    ("variable", "line", "status", "gone"),
    [
        pytest.param("", "", "ok", (), id="not set"),
        pytest.param("/src:lib:/src/eggs.zip", "", "ok", (), id="all are there"),
        pytest.param(":/src:", "", "ok", (), id="an empty entry is the working directory"),
        pytest.param("/src:/scr", "", "warn", ("/scr",), id="a typo"),
        pytest.param("/src", "PYTHONPATH=/gone python t.py", "warn", ("/gone",), id="the command"),
        pytest.param("/src", "PYTHONPATH=$HOME/x python t.py", "ok", (), id="a shell expands it"),
    ],
)
def test_entries(variable: str, line: str, status: str, gone: tuple[str, ...]) -> None:
    host = FakeHost(files=FILES, env={"PYTHONPATH": variable})
    command = parse_command(line.split()) if line else missing()
    fact = python_path.function(host, RunNeeds(cwd="/job"), command)
    assert fact.missing == gone
    judged = judge(pythonpath_entry_missing.entries_exist, python_path=fact)
    assert judged.statuses == [status]
