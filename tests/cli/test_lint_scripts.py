"""`lint` judges the variables of shell scripts, and the configs that files name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from dsdoctor.cli.lint import _lint_all
from dsdoctor.judge import Policy
from dsdoctor.lint import FileReport, Linter
from dsdoctor.packs import load

REGISTRY = load(builtin_only=True)
LINTER = Linter(REGISTRY, list(REGISTRY), "0.19.8", Policy())
LAUNCH = "torchrun --nproc_per_node=2 train.py\n"
FAULTY = '{\n "train_micro_batch_size_per_gpu": 1,\n "zero_optimization": {"stage": 7}}\n'


def found(tmp_path: Path, text: str, name: str = "run.sh") -> list[tuple[str, int, str]]:
    path = tmp_path / name
    path.write_text(f"#!/bin/bash\n{text}")
    report = LINTER.lint(path, name)
    assert report is not None
    return [
        (one.condition, one.evidence["line"], one.hint)
        for one in report.findings
        if one.condition.startswith("nccl")
    ]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        pytest.param(f"export NCCL_DEBUGG=INFO\n{LAUNCH}", 2, id="exported"),
        pytest.param(f"NCCL_DEBUGG=INFO\nexport NCCL_DEBUGG\n{LAUNCH}", 2, id="exported-later"),
        pytest.param(f"# start\nNCCL_DEBUGG=INFO {LAUNCH}", 3, id="in-front-of-the-command"),
        pytest.param(
            f"export NCCL_DEBUGG=WARN\nexport NCCL_DEBUGG=INFO\n{LAUNCH}", 3, id="the-last-one"
        ),
        pytest.param(f"export NCCL_DEBUGG=INFO\nexport N=$(f)\n{LAUNCH}", 2, id="one-is-computed"),
        pytest.param(
            "export NCCL_DEBUGG=INFO\ntorchrun --nproc_per_node=$1 train.py\n",
            2,
            id="of-a-launch-that-is-not-judged",
        ),
    ],
)
def test_a_variable_of_a_script_is_judged_at_its_line(tmp_path: Path, text: str, line: int) -> None:
    (one,) = found(tmp_path, text)
    assert one[:2] == ("nccl-unknown-variable", line)
    assert f"remove `NCCL_DEBUGG` from line {line} of `run.sh`" in one[2]


def test_a_variable_is_reported_once_for_all_launches(tmp_path: Path) -> None:
    text = f"export NCCL_DEBUGG=INFO\n{LAUNCH}export NCCL_SOCKET_NTHREADS=2\n{LAUNCH}"
    assert len(found(tmp_path, text)) == 1


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"export NCCL_DEBUG=INFO\n{LAUNCH}", id="one-that-nccl-reads"),
        pytest.param(f"NCCL_DEBUGG=INFO\n{LAUNCH}", id="not-exported"),
        pytest.param(f"export NCCL_DEBUGG=INFO\nunset NCCL_DEBUGG\n{LAUNCH}", id="unset"),
        pytest.param(f"# export NCCL_DEBUGG=INFO\n{LAUNCH}", id="a-comment"),
        pytest.param(f"{LAUNCH}export NCCL_DEBUGG=INFO\n", id="after-the-launch"),
        pytest.param(f"export NCCL_DEBUGG=$LEVEL\n{LAUNCH}", id="not-known"),
        pytest.param(
            f'if [ "$A" ]; then\n  export NCCL_DEBUGG=INFO\nfi\n{LAUNCH}', id="in-a-branch"
        ),
        # whether it slows anything down is up to the GPUs
        pytest.param(f"export NCCL_P2P_DISABLE=1 NCCL_IB_DISABLE=1\n{LAUNCH}", id="a-switch"),
    ],
)
def test_other_variables_of_a_script_are_no_finding(tmp_path: Path, text: str) -> None:
    assert not found(tmp_path, text)


def reports(folder: Path, *names: str) -> dict[str, FileReport]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        done, refused = _lint_all(LINTER, names)
    finally:
        os.chdir(before)
    assert not refused
    return {report.path: report for report in done}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        pytest.param("run.sh", "deepspeed t.py --deepspeed conf/a.json\n", id="launch-line"),
        pytest.param("run.sh", "deepspeed --num_gpus $N t.py --deepspeed conf/a.json\n", id="part"),
        pytest.param("run.sh", "A=conf/a.json\ndeepspeed t.py --deepspeed $A\n", id="variable"),
        pytest.param("run.sh", "cd /x\naccelerate launch --config_file a.yaml t.py\n", id="twice"),
        pytest.param(
            "b.yaml",
            "distributed_type: DEEPSPEED\ndeepspeed_config:\n  deepspeed_config_file: conf/a.json\n",
            id="accelerate",
        ),
        pytest.param("sft.yaml", "model: a\ndeepspeed: conf/a.json\n", id="trainer"),
    ],
)
def test_a_config_that_a_file_names_is_judged_too(tmp_path: Path, name: str, text: str) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/a.json").write_text(FAULTY)
    (tmp_path / "a.yaml").write_text("deepspeed_config: conf/a.json\n")
    (tmp_path / name).write_text(text)
    done = reports(tmp_path, name)
    (finding,) = done["conf/a.json"].findings
    assert finding.evidence["line"] == 3
    # once, if it was passed as well
    assert [*reports(tmp_path, "conf", name)] == [
        "conf/a.json",
        *(k for k in done if "conf" not in k),
    ]


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("deepspeed t.py --deepspeed a.json\n", id="absent"),
        pytest.param("deepspeed t.py --deepspeed $CONFIG\n", id="not-known"),
        pytest.param("deepspeed t.py --deepspeed /etc/hostname\n", id="absolute"),
        pytest.param("deepspeed t.py --deepspeed sub\n", id="a-folder"),
        pytest.param(f"deepspeed t.py --deepspeed {'a' * 5000}\n", id="too-long"),
        pytest.param("deepspeed t.py --deepspeed empty.json\n", id="no-config"),
    ],
)
def test_a_name_that_leads_to_no_config_adds_nothing(tmp_path: Path, text: str) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "empty.json").write_text("")
    (tmp_path / "run.sh").write_text(text)
    (report,) = [one for path, one in reports(tmp_path, "run.sh").items() if path != "empty.json"]
    assert not report.findings
