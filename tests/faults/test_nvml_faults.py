"""The whole command over the fake NVML library, under the real binding."""

from __future__ import annotations

import copy
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.faults.test_fault_matrix import LIMIT, assert_clean
from tests.nvml import fakenvml, scenarios
from tests.support.command import Outcome, clean_environment, dsdoctor

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a shared library for Linux"),
    pytest.mark.system,
]


def check(tmp_path: Path, scenario: Any, *argv: str) -> Outcome:
    env = {**clean_environment(tmp_path), **fakenvml.environment(scenario, tmp_path)}
    done = dsdoctor("check", "--quick", *LIMIT, *argv, env=env, cwd=tmp_path)
    assert_clean(done.err, tmp_path)
    return done


def test_gpus_are_read_through_the_real_binding(tmp_path: Path) -> None:
    done = check(tmp_path, scenarios.h100_x8(), "--select", "gpu,topology", "--gpus", "0,7")
    assert done.report["gpus"] == ["8 × NVIDIA H100 80GB HBM3"]
    assert done.statuses() == {}
    assert done.status == 0


def test_a_call_that_hangs_names_its_gpu(tmp_path: Path) -> None:
    scenario = copy.deepcopy(scenarios.h200_x8())
    scenario["hang"] = {"nvmlDeviceGetFieldValues@3": 1000}
    done = check(tmp_path, scenario)
    (finding,) = [f for f in done.report["findings"] if f["condition"] == "nvml-unusable"]
    assert finding["status"] == "fail"
    assert "gpu 3" in finding["message"]
    assert done.status == 1


def test_a_lost_gpu_is_named(tmp_path: Path) -> None:
    done = check(tmp_path, scenarios.h200_x8_lost())
    assert done.of("gpu-lost") == "fail"
    assert done.status == 1


def test_an_index_that_is_not_there(tmp_path: Path) -> None:
    done = check(tmp_path, scenarios.rtx_3090_x2_nvlink(), "--gpus", "0,5")
    troubles = [f for f in done.report["findings"] if f["status"] == "fail"]
    assert any("5" in f["message"] for f in troubles)
    assert done.of("visible-devices-invalid") == "fail"


def test_fewer_gpus_than_expected(tmp_path: Path) -> None:
    done = check(tmp_path, scenarios.rtx_3090_x2_nvlink(), "--expect-gpus", "4")
    assert done.of("gpu-count-unexpected") == "fail"
    assert done.status == 1
