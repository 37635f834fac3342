"""Rows of `kubernetes-gpus-not-visible`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Environment, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.cluster import kubernetes_gpus_not_visible
from tests.checks import machines

CHECK = kubernetes_gpus_not_visible.pod_sees_its_gpus
POD = msgspec.structs.replace(machines.LINUX, container="kubernetes")
TWO = machines.gpus("A100", "A100")
SOME = RunNeeds(expect_gpus=1)


@pytest.mark.parametrize(
    ("os", "variables", "gpus", "run", "expected"),
    [
        pytest.param(
            machines.LINUX,
            {"NVIDIA_VISIBLE_DEVICES": "void"},
            machines.ABSENT,
            SOME,
            "skip",
            id="a machine that is not a container",
        ),
        pytest.param(
            machines.DOCKER,
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            TWO,
            SOME,
            "skip",
            id="a Docker container, which is not a pod",
        ),
        pytest.param(POD, {}, TWO, SOME, "skip", id="a pod whose device plugin sets no variable"),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "GPU-0a100,GPU-1a100"},
            TWO,
            RunNeeds(),
            "ok",
            id="a pod that sees both GPUs it was given",
        ),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            TWO,
            RunNeeds(),
            "ok",
            id="a pod that sees all GPUs, and nothing says how many it needs",
        ),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "void"},
            machines.ABSENT,
            RunNeeds(),
            "ok",
            id="a pod without GPUs, and nothing says that it needs one",
        ),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "void"},
            machines.ABSENT,
            SOME,
            "fail",
            id="a pod without GPUs that needs one",
        ),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "GPU-0a100,GPU-gone"},
            TWO,
            RunNeeds(),
            "fail",
            id="a pod that does not see one of the two GPUs it was given",
        ),
        pytest.param(
            POD,
            {"NVIDIA_VISIBLE_DEVICES": "all"},
            TWO,
            SOME,
            "warn",
            id="a pod that sees both GPUs of the node but needs one",
        ),
    ],
)
def test_rows(os: Any, variables: dict[str, str], gpus: Any, run: RunNeeds, expected: str) -> None:
    assert (
        judge(
            CHECK,
            os_info=os,
            environment=Environment(variables=variables),
            gpus=gpus,
            run_needs=run,
        ).status
        == expected
    )
