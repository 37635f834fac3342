"""The log of the gate: lines, rotation, what a day comes to, and `dsdoctor hook status`."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from pathlib import Path

from dsdoctor.hook import gatelog


def fill(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    common = {"hook": "slurm-prolog", "node": "n1"}
    for number in range(98):
        gatelog.write(folder, event="begin", **common, run=f"r{number}")
        gatelog.write(
            folder, event="end", **common, run=f"r{number}", decision="pass", seconds="0.40"
        )
    gatelog.write(folder, event="end", **common, decision="pass", cause="spawn", seconds="1.00")
    gatelog.write(
        folder, event="end", **common, decision="block", condition="gpu-lost", seconds="3.00"
    )
    gatelog.write(folder, event="end", hook="npd", decision="pass", seconds="0.10")


def test_what_a_dry_run_let_pass_is_counted_for_itself(tmp_path: Path) -> None:
    words = {"hook": "slurm-prolog", "decision": "pass", "cause": "", "seconds": "0.1"}
    gatelog.write(tmp_path, event="end", **words, run="a", would="gpu-lost")
    gatelog.write(tmp_path, event="end", **words, run="b", would="")
    (day,) = gatelog.summarize(gatelog.read(tmp_path), "n1")
    assert (
        "2 ran: 1 passed, 0 passed without a verdict, 0 blocked, 1 passed because of dry run\n"
        in (gatelog.text([day], 24))
    )
    assert "would have blocked without dry run: gpu-lost 1" in gatelog.text([day], 24)
    assert any('decision="would-block",cause="gpu-lost"} 1' in x for x in gatelog.metrics([day]))


def test_a_day_is_summed_up_by_node_and_hook(tmp_path: Path) -> None:
    fill(tmp_path)
    npd, prolog = sorted(
        gatelog.summarize(gatelog.read(tmp_path), "here"), key=lambda one: one.hook
    )
    assert (npd.node, npd.ran) == ("here", 1)
    assert (prolog.node, prolog.ran, prolog.passed) == ("n1", 100, 98)
    assert (prolog.unjudged, prolog.blocked) == ({"spawn": 1}, {"gpu-lost": 1})
    assert (prolog.quantile(0.5), prolog.quantile(0.99)) == (0.4, 1.0)
    assert gatelog.summarize(gatelog.read(tmp_path), "here", now=time.time() + 90000) == []


def test_the_log_begins_anew_and_the_last_one_is_kept(tmp_path: Path) -> None:
    fill(tmp_path)
    gatelog.rotate(tmp_path)
    assert not (tmp_path / gatelog.OLD_NAME).exists()
    gatelog.rotate(tmp_path, limit_kib=1)
    assert not (tmp_path / gatelog.NAME).exists()
    gatelog.write(tmp_path, event="end", hook="npd", decision="pass")
    assert len(gatelog.read(tmp_path)) == 200


def test_damaged_lines_are_left_out(tmp_path: Path) -> None:
    (tmp_path / gatelog.NAME).write_bytes(
        b"time=x hook=npd\n\xff\x00\ntime=nan hook=npd\n\ntime=1 event=end hook=npd\ntime=2 hook="
    )
    assert [row["time"] for row in gatelog.read(tmp_path)] == ["1"]


def status(*argv: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor", "hook", "status", *argv],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_hook_status(tmp_path: Path) -> None:
    run = tmp_path / "run"
    missing = status("--run-folder", str(run))
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)
    run.mkdir()
    assert "no hook has run in the last 24 h" in status("--run-folder", str(run)).stdout
    fill(run)
    shown = status("--run-folder", str(run)).stdout
    assert "n1 · slurm-prolog · last 24 h" in shown
    assert "100 ran: 98 passed, 1 passed without a verdict, 1 blocked" in shown
    assert "p50 0.40, p99 1.00" in shown
    found = json.loads(status("--run-folder", str(run), "--format", "json").stdout)
    assert sum(row["ran"] for row in found["runs"]) == 101
    text = status("--run-folder", str(run), "--format", "prometheus").stdout
    row = 'node="n1",hook="slurm-prolog",decision="block",cause="gpu-lost"} 1'
    assert f"dsdoctor_gate_runs{{{row}" in text
