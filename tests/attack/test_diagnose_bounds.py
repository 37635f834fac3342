"""Hostile logs cost linear time and flat memory, and the report says what was not read."""

from __future__ import annotations

import functools
import gzip
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dsdoctor import logs, packs
from dsdoctor.cli import log_heads
from dsdoctor.logs import bounds
from dsdoctor.logs.reader import Source
from dsdoctor.logs.scan import Scanner
from dsdoctor.model.diagnosis import Diagnosis, Outcome
from tests.support.command import clean_environment, dsdoctor

pytestmark = pytest.mark.any_user

MIB = 1 << 20


@functools.cache
def signatures() -> logs.Knowledge:
    return logs.signatures_of(packs.load(()))


RANK = (
    "[rank{0}]: Traceback (most recent call last):\n"
    '[rank{0}]:   File "a.py", line 1, in f\n'
    "[rank{0}]: RuntimeError: NCCL error in: x.cpp:12, unhandled system error\n"
    "[rank{0}]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {0}.00 GiB\n"
    "[rank{0}]: ValueError: y{0}\n"
)


def spent(make: Callable[[int], list[Source]], size: int) -> float:
    sources = make(size)
    begun = time.process_time()
    logs.diagnose(sources, signatures())
    return time.process_time() - begun


def flood(line: str) -> Callable[[int], list[Source]]:
    return lambda size: [
        Source(name="x", data="".join(line.format(n) for n in range(size)).encode())
    ]


def of_ranks(size: int) -> list[Source]:
    return [Source(name=f"r{n}", data=(RANK.format(n) * 8).encode()) for n in range(size // 100)]


SHAPES: dict[str, Callable[[int], list[Source]]] = {
    "one error": flood("RuntimeError: x\n"),
    "errors that differ": flood("ValueError: x{0}\n"),
    "tracebacks": flood('Traceback (most recent call last):\n  File "a.py", line 1\nKeyError: {0}\n'),
    "an open traceback": flood("Traceback (most recent call last):\n  File\n"),
    "ranks": flood("[rank{0}]: RuntimeError: x\n"),
    "out of memory": flood("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {0} GiB\n"),
    "restarts": flood("[INFO] will restart worker group {0}\n"),
    "files of failed ranks": of_ranks,
}  # fmt: skip


@pytest.mark.parametrize("make", SHAPES.values(), ids=SHAPES)
def test_a_flood_is_read_in_linear_time(make: Callable[[int], list[Source]]) -> None:
    spent(make, 100)  # patterns are compiled when they are first used
    short, long = spent(make, 1_500), spent(make, 12_000)
    # eight times the lines: linear is eight times the time, quadratic sixty-four
    assert long < max(24 * short, 0.4)


def test_a_line_that_adds_nothing_is_looked_at_once() -> None:
    begun = time.process_time()
    found = logs.diagnose([Source(name="x", data=b"RuntimeError: x\n" * 200_000)], signatures())
    assert found.outcome is Outcome.UNRECOGNISED
    assert found.lines == 200_000
    assert time.process_time() - begun < 20  # 0.6 s; 5 s before


def test_what_a_flood_hides_is_still_found() -> None:
    last = b"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB\n"
    known = [logs.Known(*row[:3], tuple(row[3]), row[4]) for row in signatures()]
    found = Scanner(known).scan(Source(name="x", data=b"RuntimeError: x\n" * 50_000 + last))
    assert {hit.line for hit in found.hits} == {50_001}


def read(sources: list[Source], **limits: float) -> Diagnosis:
    return logs.diagnose(sources, signatures(), budget=bounds.Budget(**limits))  # type: ignore[arg-type]


def test_bytes_beyond_the_limit_are_not_read_and_named() -> None:
    found = read([Source(name="big", data=b"all is well\n" * 400_000)], size=2 * MIB)
    assert found.left_out == (f"`big` after line {found.lines} (the limit of {2 * MIB} bytes)",)
    assert 100_000 < found.lines < 400_000
    assert found.outcome is Outcome.UNRECOGNISED  # never clean where not all was read


def test_logs_beyond_the_limit_are_not_read_and_counted() -> None:
    found = read([Source(name=f"r{n}", data=b"KeyError: 1\n") for n in range(9)], files=4)
    assert found.files == 4
    assert found.left_out == ("5 of 9 logs (the limit of 4 logs)",)


def test_time_beyond_the_limit_ends_the_reading() -> None:
    found = read([Source(name=f"r{n}", data=b"KeyError: 1\n") for n in range(9)], seconds=-1)
    assert found.files == 1
    assert found.left_out == (
        "`r0` after line 0 (the limit of -1 s)",
        "8 of 9 logs (the limit of -1 s)",
    )


def test_many_parts_are_counted() -> None:
    budget = bounds.Budget()
    for number in range(bounds.NAMED + 3):
        budget.leave_out(f"part {number}")
    assert budget.left_out_parts()[-1] == "3 further parts"


def test_memory_is_flat_however_many_logs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dsdoctor.logs.hits.MOST_KEPT", 0)
    text = (RANK.format(7) * 40).encode()
    few = [scan_size(text)]
    monkeypatch.setattr("dsdoctor.logs.hits.MOST_KEPT", bounds.MOST_KEPT)
    assert few[0] < scan_size(text) / 4


def scan_size(text: bytes) -> int:
    """Lines kept of the second of two logs."""
    scanner, budget = Scanner([]), bounds.Budget(kept=1)
    scan = scanner.scan(Source(name="x", data=text), 0, budget)
    scan.bound(budget)
    return len(scan.tail) + len(scan.errors)


def bomb(path: Path, size: int) -> Path:
    """A log of that many MiB in a thousandth of it."""
    with gzip.open(path, "wb", compresslevel=9) as file:
        for _ in range(size):
            file.write(b"\0" * MIB)
    return path


@pytest.mark.parametrize("command", [["diagnose"], ["triage"], ["check", "--from-report"]])
def test_a_bomb_costs_neither_memory_nor_time(command: list[str], tmp_path: Path) -> None:
    path = bomb(tmp_path / "x.log.gz", 1500)
    more = ["--timeout", "2"] if command == ["diagnose"] else []
    code = (
        f"import resource; resource.setrlimit(resource.RLIMIT_AS, ({1 << 30}, {1 << 30})); "
        f"import sys; sys.argv[1:] = {[*command, str(path), *more]!r}; "
        "from dsdoctor.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=500, check=False,
        env=clean_environment(tmp_path), cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode in (2, 3), done.stderr
    assert "Traceback" not in done.stderr
    if more:
        assert "(the limit of 2 s)" in done.stdout.replace("\n      ", " ")


def test_the_report_says_what_was_not_read(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("all is well\n" * 10)
    env = clean_environment(tmp_path)
    done = dsdoctor("diagnose", "a.log", "--timeout", "0.000001", env=env, cwd=tmp_path)
    assert done.status == 3
    assert "not read: `a.log` after line 0 (the limit of 1e-06 s)" in done.out.replace(
        "\n      ", " "
    )
    plain = dsdoctor(
        "diagnose", "a.log", "--timeout", "0.000001", "--format", "json", env=env, cwd=tmp_path
    )
    assert plain.report["left_out"] == ["`a.log` after line 0 (the limit of 1e-06 s)"]
    whole = dsdoctor("diagnose", "a.log", "--format", "json", env=env, cwd=tmp_path)
    assert "left_out" not in whole.report


@pytest.mark.parametrize("content", [b"x", b"\n", bytes(1)], ids=["text", "lines", "zeros"])
def test_a_paste_is_read_to_its_limit(content: bytes) -> None:
    packed = gzip.compress(content * 80 * MIB, 1)
    assert len(log_heads.beginning("paste.gz", packed)[0]) <= log_heads.MOST_BYTES
    assert log_heads.MOST_BYTES == 4 * MIB
    assert log_heads.MOST_BLOCKS * bounds.BLOCK == 64 * MIB
