"""Rows of `include-exclude-conflict`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Missing, Why
from dsdoctor.hostfile import parse_hostfile
from dsdoctor.testing import judge
from dsdoctor_checks.launch import include_exclude_conflict as unit
from tests.checks.launch.rows import command, gpus


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(
            "deepspeed --include localhost:0,3 t.py", "", id="two slots of this node are included"
        ),
        pytest.param(
            "deepspeed --exclude localhost:0 t.py", "", id="one slot of this node is excluded"
        ),
        pytest.param(
            "deepspeed --num_gpus 2 --num_nodes 1 t.py", "", id="a number of GPUs and of nodes"
        ),
        pytest.param(
            "torchrun --nproc_per_node 2 t.py --include a --exclude b",
            "",
            id="options of the script behind its name are not the launcher's",
        ),
        pytest.param(
            "deepspeed --include localhost:0 --exclude localhost:1 t.py",
            "`--exclude`",
            id="included and excluded slots at once",
        ),
        pytest.param(
            "deepspeed --include localhost:0 --num_gpus 1 t.py",
            "`--num_gpus`",
            id="included slots and a number of GPUs at once",
        ),
        pytest.param(
            "deepspeed --include localhost:0,4 t.py", "slot 4", id="slot 4 on a node with four GPUs"
        ),
        pytest.param(
            "deepspeed --include node-z:0 t.py", "`node-z`", id="a node that is not in the hostfile"
        ),
        pytest.param(
            "deepspeed --include localhost:a t.py",
            "does not have the form",
            id="a slot that is not a number",
        ),
    ],
)
def test_options(line: str, words: str) -> None:
    absent = Missing(why=Why.ABSENT, detail="none was given")
    judged = judge(
        unit.options_go_together, launch_command=command(line), gpus=gpus(4), hostfile=absent
    )
    assert judged.statuses == ["fail" if words else "ok"]
    assert not words or words in judged.findings[0].message


def test_without_a_look_for_a_hostfile_its_hosts_are_not_known() -> None:
    given = command("deepspeed --include node-z:0@localhost:9 t.py")
    nobody = Missing(why=Why.NOT_ASKED, detail="")
    judged = judge(unit.options_go_together, launch_command=given, gpus=gpus(4), hostfile=nobody)
    assert judged.statuses == ["skip", "fail"]


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


def test_slots_of_a_node_whose_gpus_are_not_known_are_not_called_right() -> None:
    given = command("deepspeed --include localhost:9 t.py")
    nobody = Missing(why=Why.ABSENT, detail="")
    judged = judge(unit.options_go_together, launch_command=given, hostfile=nobody, gpus=nobody)
    assert judged.statuses == ["skip"]
    assert "not known" in judged.findings[0].message
