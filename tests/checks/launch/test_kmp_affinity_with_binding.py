"""Rows of `kmp-affinity-with-binding`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor_checks.launch import kmp_affinity_with_binding as unit
from tests.checks.launch.rows import command, env, statuses


@pytest.mark.parametrize(
    ("line", "variables", "status"),
    [
        ("deepspeed --bind_cores_to_rank t.py", {}, ""),
        ("deepspeed t.py", {"KMP_AFFINITY": "compact"}, ""),
        ("torchrun t.py --bind_cores_to_rank", {"KMP_AFFINITY": "compact"}, ""),
        ("deepspeed --bind_cores_to_rank t.py", {"KMP_AFFINITY": "compact"}, "fail"),
    ],
)
def test_binding(line: str, variables: Any, status: str) -> None:
    found = unit.binding_is_left_to_one.function(command(line), env(**variables))
    assert statuses(found) == status
