"""`dsdoctor.preflight()` and `python -m dsdoctor.preflight -- CMD`, as processes of their own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.command import clean_environment

ROOT = Path(__file__).parent.parent.parent
EXAMPLES = ROOT / "docs" / "examples"


def preflight(tmp_path: Path, *argv: str, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dsdoctor.preflight", *argv],
        env=clean_environment(tmp_path, **env),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )


def test_the_commands_own_status_is_returned(tmp_path: Path) -> None:
    assert preflight(tmp_path, "--quick", "--", "sh", "-c", "exit 7").returncode == 7


def test_guide_b11_wrapper_checks_deepspeed_config_and_data_before_launch(tmp_path: Path) -> None:
    """The guide's wrapper script: deepspeed there? config there? data there? then launch."""
    good = tmp_path / "ds_config.json"
    good.write_text(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 2}}))
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"train_batch_size": 8, "zero_optimization": {"stage": 7}}))
    data = tmp_path / "train.jsonl"
    data.write_text("{}\n")
    launch = ["--", "echo", "launched"]

    done = preflight(tmp_path, "--config", str(good), "--needs", str(data), *launch)
    assert (done.returncode, done.stdout) == (0, "launched\n"), done.stderr

    no_data = preflight(tmp_path, "--needs", str(tmp_path / "none.jsonl"), *launch)
    assert (no_data.returncode, no_data.stdout) == (2, "")
    assert "none.jsonl" in no_data.stderr

    no_config = preflight(tmp_path, "--config", str(tmp_path / "none.json"), *launch)
    assert (no_config.returncode, no_config.stdout) == (2, "")
    assert no_config.stderr.count("\n") == 1

    bad_config = preflight(tmp_path, "--config", str(bad), *launch)
    assert (bad_config.returncode, bad_config.stdout) == (1, "")
    assert "stage" in bad_config.stderr
    assert "is not started" in bad_config.stderr

    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    python = str(bare / "bin" / "python")
    no_deepspeed = preflight(tmp_path, "--config", str(good), *launch, DSDOCTOR_PYTHON=python)
    assert (no_deepspeed.returncode, no_deepspeed.stdout) == (1, "")
    assert "deepspeed" in no_deepspeed.stderr

    on = preflight(tmp_path, "--warn-only", "--config", str(bad), *launch)
    assert (on.returncode, on.stdout) == (0, "launched\n")


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("--",),
        ("echo", "x"),
        ("--no-such", "--", "echo"),
        ("--timeout", "soon", "--", "echo"),
        ("--timeout", "nan", "--", "echo"),
        ("--config", "--", "echo"),
        ("--quick", "--", "/nowhere/program"),
    ],
)
def test_misuse(tmp_path: Path, argv: tuple[str, ...]) -> None:
    done = preflight(tmp_path, *argv)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("dsdoctor: ")


def test_only_one_rank_of_a_node_looks(tmp_path: Path) -> None:
    script = (
        "import sys, dsdoctor\n"
        "print(dsdoctor.preflight(quick=True))\n"
        "print('dsdoctor.engine' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_environment(tmp_path, LOCAL_RANK="1"),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "None\nFalse\n"


def test_in_a_script_a_failure_is_an_exception_with_the_report(tmp_path: Path) -> None:
    bad = tmp_path / "bad.json"
    bad.write_text(json.dumps({"zero_optimization": {"stage": 7}}))
    script = (
        "import dsdoctor\n"
        "assert dsdoctor.preflight(quick=True).findings\n"
        "import dsdoctor.preflight\n"
        "assert dsdoctor.preflight(quick=True).findings  # module and function are one\n"
        "try:\n"
        f"    dsdoctor.preflight({str(bad)!r}, quick=True)\n"
        "except dsdoctor.PreflightError as error:\n"
        "    print(type(error.report).__name__, error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        env=clean_environment(tmp_path),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=550,
    )
    assert done.stdout.startswith("Report DSD"), done.stderr


@pytest.mark.train
@pytest.mark.parametrize("example", ["train_trainer.py", "train_accelerate.py"])
def test_the_examples_train_under_torchrun(tmp_path: Path, example: str) -> None:
    # a variable of GPUs is what the preflight warns of on a machine without one
    env = clean_environment(
        tmp_path, OMP_NUM_THREADS="1", ACCELERATE_USE_CPU="true", CUDA_VISIBLE_DEVICES="0"
    )
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "torch.distributed.run",
            "--nproc_per_node",
            "2",
            "--master_port",
            "29631",
            str(EXAMPLES / example),
        ],
        env=env,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=550,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "trained" in done.stdout
    assert "no-gpu-visible" in done.stderr, "the preflight did not look"
    assert "port-in-use" not in done.stderr, "torchrun itself holds the port"
