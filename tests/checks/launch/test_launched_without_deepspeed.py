"""Rows of `launched-without-deepspeed`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DsConfig, RunNeeds
from dsdoctor_checks.launch import launched_without_deepspeed as unit
from tests.checks.launch.rows import ABSENT, command, env, statuses

RANKS = dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), "0")


@pytest.mark.parametrize(
    ("line", "chosen", "variables", "status"),
    [
        ("deepspeed t.py", ("0", "1"), {}, ""),
        ("srun python t.py", ("0", "1"), {}, ""),
        ("python prepare.py", (), {}, ""),
        ("python t.py", ("0",), {}, ""),
        ("python t.py", ("0", "1"), {}, "fail"),
        ("python t.py --deepspeed ds.json", (), {}, "warn"),
        ("python t.py --deepspeed ds.json", (), RANKS, "ok"),
        ("python -m torch.distributed.run t.py", ("0", "1"), {}, ""),
    ],
)
def test_launcher(line: str, chosen: tuple[str, ...], variables: Any, status: str) -> None:
    check = unit.a_launcher_starts_the_ranks.function
    found = check(command(line), RunNeeds(gpus=chosen), env(**variables), ABSENT)
    assert statuses(found) == status


def test_config_needs_ranks() -> None:
    check = unit.a_launcher_starts_the_ranks.function
    found = check(command("python t.py"), RunNeeds(), env(), DsConfig(parsed={}))
    assert statuses(found) == "warn"
