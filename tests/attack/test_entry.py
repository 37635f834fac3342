"""Whatever happens to dsdoctor itself ends in one line and status 2, never in a verdict."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import clean_environment

DSDOCTOR = f"{sys.executable} -m dsdoctor"
DIGITS = "9" * 6000
FILES = {
    "deep.json": "[" * 100_000,
    "deep-object.json": '{"a":' * 100_000,
    "digits.json": f'{{"schema": "dsdoctor/snapshot", "version": {DIGITS}}}',
    "digits-fact.json": f'{{"schema": "dsdoctor/snapshot", "version": 1, "facts": {{"resources": {{"cpus_logical": {DIGITS}}}}}}}',
    "types.json": '{"schema": "dsdoctor/snapshot", "version": [], "facts": 7}',
    "hostfile": f"gpu1 slots={DIGITS}\n",
    "option-hostfile": "-oProxyCommand=touch${IFS}owned slots=1\n",
}


def shell(line: str, tmp_path: Path, **env: str) -> tuple[int, str, str]:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=tmp_path,
        env=clean_environment(tmp_path, **env),
        capture_output=True,
        text=True,
        errors="replace",
        timeout=500,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("{} check --quick >&-", "standard output is closed"),
        ("{} --version >&-", "standard output is closed"),
        ("{} check --quick >/dev/full", "standard output cannot be written: No space left"),
        ("{} --version >/dev/full", "No space left"),
        ("{} explain DSD101 >/dev/full", "No space left"),
        ("ulimit -n 16; {} check --quick", "too few open files for dsdoctor: 16 are allowed"),
        ("ulimit -v 120000; {} check --quick", "out of memory, threads or address space"),
        ("PYTHONOPTIMIZE=2 {} check --quick", "-OO"),
        pytest.param(f"{{}} check --gpus {DIGITS}", "is not a GPU", id="a GPU of 6,000 digits"),
        pytest.param(f"{{}} smoke --cpu {DIGITS}", "--cpu", id="a number of ranks of 6,000 digits"),
        ("{} check --from $'\\xff.json'", "cannot be read"),
        ("{} diagnose --format json $'\\xff.log'", "does not exist"),
        ("{} check --from deep.json", "nested"),
        ("{} check --from deep-object.json", "nested"),
        ("{} diff deep.json deep.json", "nested"),
        ("{} smoke --plan deep.json", "deep.json"),
        ("{} check --from digits.json", "digits.json"),
        ("{} check --from types.json", "types.json"),
        ("{} check --from -", "snapshot"),
        ("{} fleet check --nodes @all", "`@all`"),
        ("{} fleet check --nodes -oProxyCommand=x", "-oProxyCommand"),
        ("{} fleet check --hostfile hostfile", "hostfile"),
        ("{} fleet check --hostfile option-hostfile", "option-hostfile"),
        ("{} fleet smoke --hostfile option-hostfile", "option-hostfile"),
        ("{} smoke --cpu 1 --hostfile option-hostfile", "option-hostfile"),
    ],
)
def test_one_line_and_status_2(line: str, words: str, tmp_path: Path) -> None:
    status, out, err = shell(line.format(DSDOCTOR), tmp_path)
    assert (status, out) == (2, ""), err
    assert words in err
    assert len(err.splitlines()) == 1
    assert err.startswith("dsdoctor: ")
    assert not (tmp_path / "owned").exists()


def test_closed_input_and_closed_errors_do_no_harm(tmp_path: Path) -> None:
    status, out, _ = shell(f"{DSDOCTOR} explain DSD101 <&- 2>&-", tmp_path)
    assert status == 0
    assert "DSD101" in out
    status, out, err = shell(f"{DSDOCTOR} check --quick <&- >&- 2>&-", tmp_path)
    assert (status, out, err) == (2, "", "")


@pytest.mark.parametrize(
    ("words", "status"),
    [
        (("--version",), 0),
        (("--help",), 141),
        (("explain", "DSD101"), 141),
        (("check", "--quick"), 141),
    ],
)
def test_a_reader_that_has_gone_is_neither_a_failure_nor_health(
    tmp_path: Path, words: tuple[str, ...], status: int
) -> None:
    """As behind `| head` with `set -o pipefail`; what fits into a pipe is flushed at the end."""
    reader, writer = os.pipe()
    os.close(reader)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "dsdoctor", *words], stdout=writer, stderr=subprocess.PIPE,
            env=clean_environment(tmp_path), timeout=500, check=False,
        )  # fmt: skip
    finally:
        os.close(writer)
    assert (done.returncode, done.stderr) == (status, b"")


def test_a_fact_of_6000_digits_is_a_broken_snapshot(tmp_path: Path) -> None:
    status, out, err = shell(f"{DSDOCTOR} check --from digits-fact.json", tmp_path)
    assert status in (2, 3), out
    assert "Traceback" not in out + err


CRASH = """
import sys
from dsdoctor.cli import loading
def crash(*args, **kwargs):
    raise ValueError("\\x1b]52;c;QUJD\\x07 password=hunter2x " + "y" * 900)
loading.load_registry = crash
from dsdoctor.__main__ import main
sys.argv = ["dsdoctor", "check", "--quick"]
sys.exit(main())
"""


@pytest.mark.parametrize("debug", ["", "1"])
def test_a_crash_is_one_line_and_a_traceback_on_request(tmp_path: Path, debug: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CRASH],
        env=clean_environment(tmp_path, DSDOCTOR_DEBUG=debug),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 2
    assert ("Traceback" in done.stderr) is (debug == "1")
    last = done.stderr.splitlines()[-1]
    assert last.startswith("dsdoctor: internal error (ValueError: ]52;c;QUJD password=[masked] y")
    assert "DSDOCTOR_DEBUG=1" in last or len(last) > 400
    assert "\x1b" not in last
    assert len(last) < 450
