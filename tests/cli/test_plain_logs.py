"""A log in which DeepSpeed prints its config is a log, not a paste about a machine."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner

from dsdoctor.cli.diagnose import command

PRINTED = """\
[2026-11-30 12:00:00,000] [INFO] [real_accelerator.py:222:get_accelerator] Setting ds_accelerator to cpu (override)
[2026-11-30 12:00:00,000] [INFO] [config.py:989:print_user_config]   json = {
    "train_micro_batch_size_per_gpu": 2,
    "zero_optimization": {
        "stage": 1
    }%s
}
step 1 loss 0.5
step 2 loss 0.4
training finished
"""


def test_a_config_without_a_fault_is_not_judged_aloud(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(PRINTED % "")
    result = CliRunner().invoke(command, [str(log)], standalone_mode=False)
    assert result.return_value == 0
    assert "CLEAN" in result.output
    assert "paste" not in result.output
    assert "inconclusive" not in result.output


def test_a_config_with_a_fault_is(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text(PRINTED % ',\n    "fp16": {"enabled": true},\n    "bf16": {"enabled": true}')
    result = CliRunner().invoke(command, [str(log)], standalone_mode=False)
    assert "FAIL" in result.output
    assert "bf16" in result.output
