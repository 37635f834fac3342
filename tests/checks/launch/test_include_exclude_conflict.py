"""Rows of `include-exclude-conflict`."""

from __future__ import annotations

import pytest

from dsdoctor.hostfile import parse_hostfile
from dsdoctor.testing import judge
from dsdoctor_checks.launch import include_exclude_conflict as unit
from tests.checks.launch.rows import command, gpus


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("deepspeed --include localhost:0,3 t.py", ""),
        ("deepspeed --exclude localhost:0 t.py", ""),
        ("deepspeed --num_gpus 2 --num_nodes 1 t.py", ""),
        ("torchrun --nproc_per_node 2 t.py --include a --exclude b", ""),
        ("deepspeed --include localhost:0 --exclude localhost:1 t.py", "`--exclude`"),
        ("deepspeed --include localhost:0 --num_gpus 1 t.py", "`--num_gpus`"),
        ("deepspeed --include localhost:0,4 t.py", "slot 4"),
        ("deepspeed --include node-z:0 t.py", "`node-z`"),
        ("deepspeed --include localhost:a t.py", "does not have the form"),
        ("deepspeed --num_gpus two t.py", "needs an integer"),
    ],
)
def test_options(line: str, words: str) -> None:
    judged = judge(unit.options_go_together, launch_command=command(line), gpus=gpus(4))
    assert judged.statuses == ["fail" if words else "ok"]
    assert not words or words in judged.findings[0].message


def test_hosts_of_the_hostfile() -> None:
    hosts = parse_hostfile("a slots=2\nb slots=2\n", "hosts")
    check = unit.options_go_together
    assert (
        judge(
            check, launch_command=command("deepspeed --include a:0,1@b t.py"), hostfile=hosts
        ).status
        == "ok"
    )
    assert judge(
        check, launch_command=command("deepspeed --include a:2 t.py"), hostfile=hosts
    ).statuses == ["fail"]
