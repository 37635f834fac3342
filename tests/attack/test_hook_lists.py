"""Lists of GPUs that the owner of a job may have set, and names that become labels."""

from __future__ import annotations

from pathlib import Path

import pytest

from dsdoctor.hook import entry
from dsdoctor.hook.request import MOST_GPUS, Request, expanded, gpu_selectors
from dsdoctor.hook.rundir import RunFolder
from tests.hook.test_schedulers import LSF, SGE, call, installed
from tests.nvml import scenarios

pytestmark = pytest.mark.any_user


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("0-99999999999", id="a range of 100 billion"),
        pytest.param("0-50000000", id="a range of 50 million"),
        pytest.param("9" * 6000, id="6,000 digits"),
        pytest.param("0-" + "9" * 6000, id="a range to 6,000 digits"),
        pytest.param("9" * 6000 + "-1", id="a range from 6,000 digits"),
        pytest.param("1," * 10**6, id="a million of one index"),
    ],
)
def test_a_list_without_end_takes_no_memory(text: str) -> None:
    assert len(expanded(text)) <= MOST_GPUS
    env = {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": text}
    assert len(gpu_selectors(Request("slurm-prolog"), env) or ()) <= MOST_GPUS


@pytest.mark.parametrize(
    ("target", "name", "env"),
    [
        pytest.param("sge", "prolog.sh", {**SGE, "SGE_HGR_gpu": ""}, id="Grid Engine"),
        pytest.param("lsf", "pre-exec.sh", LSF, id="LSF"),
    ],
)
def test_a_user_does_not_take_a_node_from_everybody(
    tmp_path: Path, target: str, name: str, env: dict[str, str]
) -> None:
    """Grid Engine gives the queue the error state for the status of a fault."""
    script = installed(tmp_path, target) / name
    for gpus in ("7", "0-99999999999", "GPU-none", "9,8"):
        given = {**env, "CUDA_VISIBLE_DEVICES": gpus}
        done = call(script, given, scenarios.rtx_3090_x2_nvlink())
        assert done.returncode == 0, (gpus, done.stdout)


@pytest.mark.parametrize(
    "number", ["9" * 5000, "9" * 11, "²", "-1", ""], ids=lambda text: text[:12]
)
def test_the_number_of_an_account_that_is_none_is_not_noted(number: str) -> None:
    assert entry._notes_for_later({"SLURM_JOB_UID": number}, None)["uid"] is None
    assert entry._notes_for_later({"SLURM_JOB_UID": "1000"}, None)["uid"] == 1000


def test_what_is_no_cause_becomes_no_label(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.count("timeout")
    for name in ('a"} 1 x', "b\nc{d} 2", "c\\", "\x1b[31m", "x" * 100):
        (folder.path / "fail-open" / name).write_text(".")
    assert folder.counts() == {"timeout": 1}
