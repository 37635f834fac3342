"""Gates on the tests themselves: each one that stands in a file runs, and its rows have names."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests import conftest
from tests.support import suite
from tests.support.collection import functions_in, lost

ROOT = Path(__file__).parent.parent.parent


def test_methods_and_tests_under_a_condition_count() -> None:
    source = (
        "def test_a(): ...\n"
        "if x:\n    def test_b(): ...\n"
        "class TestC:\n    def test_d(self): ...\n"
        "def helper():\n    def test_inner(): ...\n"
    )
    assert set(functions_in(source)) == {"test_a", "test_b", "TestC.test_d"}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("cases.py", "def test_in_a_file_that_pytest_does_not_read(): ..."),
        ("test_twice.py", "def test_a(): ...\ndef test_a(): ..."),
    ],
    ids=["a file whose name pytest does not take", "one name twice"],
)
def test_a_lost_test_is_named(tmp_path: Path, name: str, source: str) -> None:
    (tmp_path / name).write_text(source)
    collected = {tmp_path / "test_twice.py": {"test_a"}}
    (line,) = lost(tmp_path, [tmp_path], collected)
    assert line.startswith(f"{name}: test_")


def test_a_run_that_loses_a_test_ends_with_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text("from tests.conftest import *")
    (tmp_path / "build").mkdir()
    (tmp_path / "build" / "test_one.py").write_text("def test_one(): ...")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--rootdir",
        str(tmp_path),
        "-p",
        "no:cacheprovider",
    ]
    argv += ["-c", "/dev/null", str(tmp_path)]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == pytest.ExitCode.USAGE_ERROR, done.stdout + done.stderr
    assert "build/test_one.py: test_one" in done.stderr + done.stdout


def test_the_parts_of_the_suite_have_every_test_once() -> None:
    """Within its folders each part collects all, or ends with a usage error."""
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        holds = [
            part
            for part in suite.parts()
            if any((ROOT / one) in path.parents for one in part if not one.startswith("--"))
            and not any(
                (ROOT / one.removeprefix("--ignore=")) in path.parents
                for one in part
                if one.startswith("--ignore=")
            )
        ]
        assert len(holds) == 1, path
    listed = [name for names in suite.LISTED for name in names]
    assert [name for name in listed if not list((ROOT / "tests" / name).glob("test_*.py"))] == []


def command(text: str, status: int = 0) -> list[str]:
    return [sys.executable, "-c", f"print({text!r}); raise SystemExit({status})"]


@pytest.mark.parametrize(
    ("statuses", "expected"),
    [
        pytest.param((0, 0, 0), 0, id="all pass"),
        pytest.param((0, 0, 1), 1, id="the last one fails"),
        pytest.param((1, 0, 0), 1, id="the first one fails"),
        pytest.param((0, 5, 1), 5, id="the first status that is not 0"),
    ],
)
def test_the_output_and_the_status_of_each_part_count(
    statuses: tuple[int, ...], expected: int, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = [command(f"part {n}", status) for n, status in enumerate(statuses)]
    assert suite.side_by_side(ran, command("before")) == expected
    assert sorted(capfd.readouterr().out.split("\n")) == [
        "",
        "1 part 0",
        "2 part 1",
        "3 part 2",
        "before",
    ]


#: Says that it runs, and ends with pytest's status when it is interrupted.
RUNS = """
import signal, time
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    print("runs", flush=True)
    time.sleep(600)
except KeyboardInterrupt:
    print("interrupted", flush=True)
    raise SystemExit(2)
"""


@pytest.mark.parametrize("place", [0, 1])
def test_a_part_that_cannot_begin_ends_the_others(
    place: int, capfd: pytest.CaptureFixture[str]
) -> None:
    ran = [[sys.executable, "-c", RUNS]]
    # it comes to its end only when the other one has begun
    ran.insert(place, command("cannot", suite.INTERRUPTED))
    assert suite.side_by_side(ran) == suite.INTERRUPTED
    assert "cannot" in capfd.readouterr().out


@pytest.mark.skipif(os.name != "posix", reason="process groups are POSIX")
def test_ctrl_c_ends_all_parts_and_shows_what_they_said() -> None:
    code = (
        "import signal, sys; from tests.support import suite\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"sys.exit(suite.side_by_side([[sys.executable, '-c', {RUNS!r}]] * 3))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, start_new_session=True
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline().endswith(b" runs\n")
        os.killpg(running.pid, signal.SIGINT)
        said = running.stdout.read().decode()
    assert running.returncode == suite.INTERRUPTED
    # the others had begun, but perhaps not come as far as their first line
    assert "interrupted" in said


@pytest.mark.parametrize(
    "value",
    [
        pytest.param("a" * 61, id="a text that would be cut"),
        pytest.param({"stage": "a" * 61}, id="a document that would be cut"),
        pytest.param(lambda: 3, id="a function without a name"),
        pytest.param(object(), id="an object without a text"),
    ],
)
def test_a_value_that_names_no_row_is_an_error(value: object) -> None:
    with pytest.raises(pytest.Collector.CollectError, match="a row of `text` needs a name"):
        conftest.pytest_make_parametrize_id(value, "text")


def test_two_rows_of_one_name_are_an_error(pytestconfig: pytest.Config) -> None:
    assert pytestconfig.getini("strict_parametrization_ids")


def _plain(row: ast.expr) -> bool:
    """A constant, or a tuple of constants: pytest writes its value into the id."""
    if isinstance(row, ast.Tuple):
        return all(_plain(value) for value in row.elts)
    try:
        return not isinstance(ast.literal_eval(row), (dict, list, set, tuple))
    except ValueError:
        return False


def _named(row: ast.expr) -> bool:
    return (
        isinstance(row, ast.Call)
        and isinstance(row.func, ast.Attribute)
        and row.func.attr == "param"
        and any(keyword.arg == "id" for keyword in row.keywords)
    )


def anonymous_rows(source: str) -> Iterator[int]:
    """Lines of the rows that hold facts and would be called `facts0`, `facts1` and so on."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        if node.func.attr != "parametrize" or any(one.arg == "ids" for one in node.keywords):
            continue
        rows = node.args[1].elts if isinstance(node.args[1], (ast.List, ast.Tuple)) else []
        yield from (row.lineno for row in rows if not _plain(row) and not _named(row))


def test_a_row_of_facts_needs_an_id() -> None:
    table = '@pytest.mark.parametrize(("a", "b"), [{}])\ndef test_a(a, b): ...\n'
    lines = ["\n('1', -1)", "\n(m.gpus(), 1)", "\npytest.param({}, 1)"]
    lines.append("\npytest.param({}, 1, id='no GPU')")
    assert list(anonymous_rows(table.format(",".join(lines)))) == [3, 4]
    assert not list(anonymous_rows(table.format("({}, 1)], ids=['no GPU'")))


def test_rows_of_the_checks_say_what_the_machine_is() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}"
        for path in sorted((ROOT / "tests" / "checks").rglob("test_*.py"))
        for line in anonymous_rows(path.read_text())
    ]
    assert found == [], 'wrap these rows in `pytest.param(..., id="...")`'
