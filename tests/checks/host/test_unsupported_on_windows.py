"""unsupported_on_windows."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Gpus, OsInfo, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.host.unsupported_on_windows import windows_can_do_it
from tests.checks.machines import LINUX, NO_ENV, gpus

WINDOWS = OsInfo(system="Windows", release="11", machine="AMD64", hostname="pc")
NVME: dict[str, object] = {"zero_optimization": {"stage": 3, "offload_param": {"device": "nvme"}}}
CPU: dict[str, object] = {"zero_optimization": {"stage": 3, "offload_param": {"device": "cpu"}}}


@pytest.mark.parametrize(
    ("os", "run", "found", "status"),
    [
        pytest.param(
            LINUX,
            RunNeeds(config=NVME),
            gpus("4090", "4090"),
            ["skip"],
            id="Linux, where two GPUs and NVMe offload work",
        ),
        pytest.param(WINDOWS, RunNeeds(), gpus("4090"), ["ok"], id="Windows with one GPU"),
        pytest.param(WINDOWS, RunNeeds(), Gpus(), ["ok"], id="Windows without a GPU"),
        pytest.param(
            WINDOWS,
            RunNeeds(config=CPU),
            gpus("4090"),
            ["ok"],
            id="Windows with parameters on the CPU",
        ),
        pytest.param(
            WINDOWS,
            RunNeeds(gpus=("1",)),
            gpus("4090", "4090"),
            ["ok"],
            id="Windows with two GPUs of which the run uses one",
        ),
        pytest.param(
            WINDOWS,
            RunNeeds(expect_gpus=2),
            gpus("4090", "4090"),
            ["fail"],
            id="Windows and a run on two GPUs",
        ),
        pytest.param(
            WINDOWS,
            RunNeeds(),
            gpus("4090", "4090"),
            ["skip"],
            id="Windows with two GPUs, and no run is stated",
        ),
        pytest.param(
            WINDOWS, RunNeeds(config=NVME), gpus("4090"), ["fail"], id="Windows with NVMe offload"
        ),
        pytest.param(
            WINDOWS,
            RunNeeds(config=NVME),
            gpus("4090", "4090"),
            ["fail", "skip"],
            id="Windows with two GPUs and NVMe offload",
        ),
    ],
)
def test_windows(os: OsInfo, run: RunNeeds, found: Any, status: list[str]) -> None:
    assert (
        judge(windows_can_do_it, os_info=os, run_needs=run, gpus=found, environment=NO_ENV).statuses
        == status
    )
