"""Rows of `kmp-affinity-with-binding`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.launch import kmp_affinity_with_binding as unit
from tests.checks.launch.rows import command, env


@pytest.mark.parametrize(
    ("line", "variables", "status"),
    [
        pytest.param(
            "deepspeed --bind_cores_to_rank t.py", {}, "ok", id="deepspeed alone binds the ranks"
        ),
        pytest.param(
            "deepspeed t.py",
            {"KMP_AFFINITY": "compact"},
            "ok",
            id="KMP_AFFINITY alone binds the threads",
        ),
        pytest.param(
            "torchrun t.py --bind_cores_to_rank",
            {"KMP_AFFINITY": "compact"},
            "ok",
            id="the option is the script's, behind its name",
        ),
        pytest.param(
            "deepspeed --bind_cores_to_rank t.py",
            {"KMP_AFFINITY": "compact"},
            "fail",
            id="deepspeed and KMP_AFFINITY both bind",
        ),
    ],
)
def test_binding(line: str, variables: Any, status: str) -> None:
    judged = judge(
        unit.binding_is_left_to_one, launch_command=command(line), environment=env(**variables)
    )
    assert judged.statuses == status.split()
