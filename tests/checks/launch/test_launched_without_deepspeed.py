"""Rows of `launched-without-deepspeed`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import DsConfig, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.launch import launched_without_deepspeed as unit
from tests.checks.launch.rows import command, env

RANKS = dict.fromkeys(("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"), "0")


@pytest.mark.parametrize(
    ("line", "chosen", "variables", "status"),
    [
        ("deepspeed t.py", ("0", "1"), {}, "ok"),
        ("srun python t.py", ("0", "1"), {}, "ok"),
        ("python prepare.py", (), {}, "ok"),
        ("python t.py", ("0",), {}, "ok"),
        ("python t.py", ("0", "1"), {}, "fail"),
        ("python t.py --deepspeed ds.json", (), {}, "warn"),
        ("python t.py --deepspeed ds.json", (), RANKS, "ok"),
        ("python -m torch.distributed.run t.py", ("0", "1"), {}, "ok"),
    ],
)
def test_launcher(line: str, chosen: tuple[str, ...], variables: Any, status: str) -> None:
    check = unit.a_launcher_starts_the_ranks
    judged = judge(
        check,
        launch_command=command(line),
        run_needs=RunNeeds(gpus=chosen),
        environment=env(**variables),
    )
    assert judged.statuses == status.split()


def test_config_needs_ranks() -> None:
    check = unit.a_launcher_starts_the_ranks
    judged = judge(
        check,
        launch_command=command("python t.py"),
        environment=env(),
        ds_config=DsConfig(parsed={}),
    )
    assert judged.statuses == ["warn"]
