"""What the reader sees, and what programs may rely on."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest

from dsdoctor.model import smoke as model
from dsdoctor.model.schema import smoke_schema
from dsdoctor.model.smoke import (
    Bandwidth,
    Comparison,
    Figures,
    Knob,
    Phase,
    Rank,
    SmokeCause,
    SmokeReport,
)
from dsdoctor.report import smoke as text_report

FAILED = SmokeReport(
    verdict="fail",
    summary="rank 1 did not arrive",
    not_proved=("that a job starts here",),
    phases=(
        Phase(name="spawn", status="ok", seconds=2.0),
        Phase(name="import", status="fail", detail="not completed by rank 1"),
        Phase(name="device", status="not-reached"),
    ),
    ranks=(
        Rank(rank=0, outcome="hung", last_phase="steps (step 2)", stack=("File a.py, line 1",)),
        Rank(rank=1, outcome="died", error="evil \x1b[2J", log_tail=("last words",)),
    ),
    causes=(
        SmokeCause(
            condition="nccl-timeout-watchdog", title="t", message="rank 1 did not arrive",
            hint="find it", evidence=("proof",),
        ),
    ),
    bisect=(Knob(knob="NCCL_P2P_DISABLE", value="1", verdict="pass", seconds=9.0, cost="slower"),),
    works_with={"NCCL_P2P_DISABLE": "1"},
    figures=Figures(
        step_ms=12.0, step_ms_low=11.0, step_ms_high=13.0, tokens_per_s=1000.0,
        bandwidth=(Bandwidth(bytes=1 << 20, gb_per_s=1.5),),
        memory=(
            Comparison(
                what="model states of a rank", predicted_bytes=1 << 20, measured_bytes=1 << 20,
                ratio=1.0,
            ),
        ),
    ),
    seconds=30.0,
)  # fmt: skip


@pytest.mark.parametrize("width", [40, 80, 200])
def test_report_says_cause_way_out_and_what_works(width: int) -> None:
    text = text_report.render(FAILED, width)
    flat = " ".join(text.split())
    for words in (
        "FAIL rank 1 did not arrive",
        "CAUSE nccl-timeout-watchdog",
        "hint: find it",
        "| File a.py, line 1",
        "| last words",
        "works with `NCCL_P2P_DISABLE=1`; without it the run fails",
        "that a job starts here",
    ):
        assert words in flat
    assert "\x1b" not in text


def test_what_the_launcher_printed_keeps_its_indentation() -> None:
    tail = ('  File "a.py", line 1, in main', "    run()", "", "OSError: no")
    report = SmokeReport(verdict="fail", summary="it ended", log_tail=tail)
    shown = text_report.render(report, 80)
    assert '\n  |   File "a.py", line 1, in main\n  |     run()\n  | OSError: no\n' in shown


def test_the_style_of_a_line_says_again_what_its_words_say() -> None:
    lines = list(text_report.lines(FAILED, 80))
    assert "\n".join(line.text for line in lines) + "\n" == text_report.render(FAILED, 80)
    styles = {line.text.strip()[:20]: line.style for line in lines}
    assert lines[0].style == "fail"
    assert styles["CAUSE  nccl-timeout-w"[:20]] == "fail"
    assert styles["hint: find it"] == "hint"
    assert styles["not tested"] == "head"
    assert styles["| last words"] == "body"


def test_guide_d4_report_gives_step_time_throughput_and_memory() -> None:
    lines = list(text_report.figure_lines(FAILED.figures))
    assert lines[0] == "step 12.0 ms (median; 11.0 to 13.0), 1,000 tokens/s"
    assert lines[1] == "all-reduce bus bandwidth, GB/s: 1.50 at 1 MiB"
    assert lines[2] == "model states of a rank: 1.0 MiB measured, 1.0 MiB predicted (1.00)"


def test_documents_keep_their_schema_and_keys() -> None:
    document = json.loads(model.encode(FAILED))
    jsonschema.validate(document, json.loads(smoke_schema()))
    assert set(document) >= {
        "schema", "version", "verdict", "proved", "not_proved", "phases", "ranks", "figures",
        "launch", "causes", "bisect", "works_with",
    }  # fmt: skip
    assert set(document["launch"]) >= {"argv", "env", "ds_config"}
    assert set(document["bisect"][0]) >= {"knob", "value", "verdict", "seconds"}


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["--cpu", "0"], "--cpu"),
        (["--cpu", "2", "--gpus", "0"], "are mutually exclusive"),
        (["--full-size"], "needs a model"),
        (["--fault", "nonsense"], "not known"),
        (["--python", "/nowhere"], "/nowhere"),
        (["--cpu", "2", "-o", "/proc/nowhere"], "/proc/nowhere"),
        (["--cpu", "2", "--plan", "absent.json"], "absent.json"),
    ],
)
def test_misuse_is_one_line_and_status_2(tmp_path: Path, args: list[str], words: str) -> None:
    result = subprocess.run(
        [sys.executable, "-m", "dsdoctor", "smoke", *args],
        capture_output=True, text=True, cwd=tmp_path, timeout=500, check=False,
    )  # fmt: skip
    assert result.returncode == 2
    assert words in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert "Traceback" not in result.stderr
