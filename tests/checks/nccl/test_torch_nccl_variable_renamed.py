"""Rows of `torch-nccl-variable-renamed`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Environment, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.nccl import torch_nccl_variable_renamed


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param({}, "ok", id="no variable is set"),
        pytest.param({"TORCH_NCCL_BLOCKING_WAIT": "1"}, "ok", id="the current name is set"),
        pytest.param({"NCCL_BLOCKING_WAIT": "1"}, "warn", id="the former name is set"),
        pytest.param(
            {"NCCL_BLOCKING_WAIT": "1", "TORCH_NCCL_BLOCKING_WAIT": "0"},
            "warn",
            id="both names are set to different values",
        ),
    ],
)
def test_rows(fact: dict[str, str], expected: str) -> None:
    assert (
        judge(
            torch_nccl_variable_renamed.names_are_current,
            environment=Environment(variables=fact),
            torch_build=TorchBuild(version="2.7.1"),
        ).status
        == expected
    )


def test_an_older_torch_reads_the_old_name() -> None:
    env = Environment(variables={"NCCL_BLOCKING_WAIT": "1"})
    facts: dict[str, Any] = {"environment": env, "torch_build": TorchBuild(version="2.1.2")}
    assert judge(torch_nccl_variable_renamed.names_are_current, **facts).status == "skip"
