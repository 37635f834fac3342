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
        (machines.LINUX, {"NVIDIA_VISIBLE_DEVICES": "void"}, machines.ABSENT, SOME, "skip"),
        (machines.DOCKER, {"NVIDIA_VISIBLE_DEVICES": "all"}, TWO, SOME, "skip"),
        (POD, {}, TWO, SOME, "skip"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "GPU-0a100,GPU-1a100"}, TWO, RunNeeds(), "ok"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "all"}, TWO, RunNeeds(), "ok"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "void"}, machines.ABSENT, RunNeeds(), "ok"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "void"}, machines.ABSENT, SOME, "fail"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "GPU-0a100,GPU-gone"}, TWO, RunNeeds(), "fail"),
        (POD, {"NVIDIA_VISIBLE_DEVICES": "all"}, TWO, SOME, "warn"),
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
