"""What a user can do wrong with `fleet`: one clear line, status 2."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsdoctor.cli.main import run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("check", "--nodes"),
        ("check --slurm", "salloc"),
        ("check --nodes a --slurm", "give one of"),
        ("check --nodes gpu[1-", "gpu[001-512]"),
        ("check --nodes gpu[9-1]", "[001-037,041]"),
        ("check --nodes a --from reports", "reaches no nodes"),
        ("check --from empty", "*.json"),
        ("check --from nowhere", "*.json"),
        ("check --from garbage", "garbage/a.json"),
        ("check --hostfile nowhere", "cannot be read"),
        ("check --hostfile none", "slots=8"),
        ("check --hostfile bad", "line 2 is `h2 slots=x`"),
        ("check --hostfile twice", "each host once"),
        ("check --nodes a", "`ssh` is not on PATH"),
        ("check --nodes a --engine pdsh", "`pdsh` cannot be run"),
        ("diff nowhere empty", "neither a report nor a folder"),
        ("smoke", "--hostfile"),
        ("smoke --hostfile none", "names no host"),
    ],
)
def test_misuse_is_one_line(
    words: str,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    for folder in ("empty", "garbage"):
        (tmp_path / folder).mkdir()
    (tmp_path / "garbage" / "a.json").write_text("hello")
    (tmp_path / "garbage" / "b.txt").write_bytes(bytes(range(256)))
    (tmp_path / "garbage" / "c.json").write_bytes(b"")
    (tmp_path / "none").write_text("# nobody\n")
    (tmp_path / "bad").write_text("h1 slots=2\nh2 slots=x\n")
    (tmp_path / "twice").write_text("h1 slots=2\nh1 slots=2\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SLURM_JOB_NODELIST", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("DSDOCTOR_PYTHON", sys.executable)
    assert run(["fleet", *words.split()]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert len(error.splitlines()) == 1, error
