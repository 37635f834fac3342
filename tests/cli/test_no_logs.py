"""`dsdoctor diagnose` of a file that is no log does not call the run sound."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from dsdoctor.cli.diagnose import command
from dsdoctor.errors import UsageError

FILES = {
    "ds_config.json": '{"train_batch_size": 8, "zero_optimization": {"stage": 3}}',
    "accelerate.yaml": "compute_environment: LOCAL_MACHINE\ndistributed_type: DEEPSPEED\n",
    "train.py": "import torch\nprint(torch.__version__)\n",
    "train.sh": "#!/bin/bash\ndeepspeed train.py\n",
    "node.json": '{"schema": "dsdoctor/snapshot", "version": 1}',
}


def diagnosed(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(command, words, standalone_mode=False)
    if isinstance(done.exception, UsageError):
        return 2, str(done.exception)
    return done.return_value, done.output


@pytest.mark.parametrize(
    ("name", "kind", "do"),
    [
        ("ds_config.json", "a DeepSpeed config", "dsdoctor lint "),
        ("accelerate.yaml", "a config of accelerate", "dsdoctor lint "),
        ("train.py", "a Python program", "dsdoctor check -- python "),
        ("train.sh", "a launch script", "dsdoctor lint "),
        ("node.json", "a snapshot of dsdoctor", "dsdoctor check --from "),
    ],
)
def test_what_it_is_and_what_judges_it_are_said(
    tmp_path: Path, name: str, kind: str, do: str
) -> None:
    path = tmp_path / name
    path.write_text(FILES[name])
    status, said = diagnosed(str(path))
    assert status == 2
    assert f"is {kind}, not the log of a run" in said
    assert f"`{do}{path}`" in said


def test_beside_a_log_and_in_a_folder_of_logs_they_are_let_pass(tmp_path: Path) -> None:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    log = tmp_path / "train.log"
    log.write_text("step 100 loss 1.0\n")
    assert diagnosed(str(tmp_path / "ds_config.json"), str(log))[0] == 0
    assert diagnosed(str(tmp_path))[0] == 0


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("trainer_state.json", '{"global_step": 100, "log_history": [{"loss": 1.0}]}'),
        ("log.json", '{"loss": 1.0}\n{"loss": 0.9}\n'),
        ("values.yaml", "loss: 1.0\n"),
        ("out.sh", "step 100 loss 1.0\n"),
        ("cut.py", "import (\n"),
    ],
)
def test_what_may_be_a_log_is_read_as_one(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    assert diagnosed(str(path))[0] == 0


def test_a_failure_in_it_is_still_named(tmp_path: Path) -> None:
    path = tmp_path / "rank.json"
    path.write_text('{"log": "RuntimeError: CUDA error: an illegal memory access was encountered"}')
    assert diagnosed(str(path))[0] == 1
