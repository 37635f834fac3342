"""Rows of `launch-option-refused`: values that are no number, and ports that do not exist."""

from __future__ import annotations

import pytest

from dsdoctor.api import LaunchParse, Missing, Why
from dsdoctor.testing import judge
from dsdoctor_checks.launch import launch_option_refused as unit
from tests.checks.launch.rows import command

ACCEPTED = LaunchParse(launcher="deepspeed", accepted=True)
NOBODY = Missing(why=Why.NOT_ASKED, detail="no launcher was asked")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        pytest.param(
            "python -m torch.distributed.launch --nproc_per_node 1 --master_port 66665 t.py",
            "a port from 0 to 65535",
            id="a port that does not exist, for torchrun",
        ),
        pytest.param(
            "accelerate launch --main_process_port 70000 t.py",
            "a port from 0 to 65535",
            id="a port that does not exist, for accelerate",
        ),
        pytest.param(
            "torchrun --rdzv-backend c10d --rdzv-endpoint h:29500 --master-port 66665 t.py",
            "",
            id="a port that torchrun does not use",
        ),
        pytest.param(
            "torchrun --rdzv_endpoint h:99999 t.py",
            "needs a port from 0 to 65535",
            id="a port that does not exist, for a rendezvous",
        ),
        pytest.param("torchrun --rdzv_endpoint [::1]:29500 t.py", "", id="an address of IPv6"),
        pytest.param("torchrun --rdzv_endpoint h t.py", "", id="no port"),
        pytest.param("torchrun --rdzv_endpoint $H:$P t.py", "", id="variables of the shell"),
        pytest.param(
            "deepspeed --num_gpus two t.py", "needs an integer", id="a number of GPUs in letters"
        ),
        pytest.param(
            "deepspeed --master_port 295000 t.py",
            "a port from 0 to 65535",
            id="a digit too many, for deepspeed",
        ),
        pytest.param("deepspeed --master_port 29500 t.py", "", id="a port"),
    ],
)
@pytest.mark.parametrize("parse", [ACCEPTED, NOBODY], ids=["asked", "not asked"])
def test_values(line: str, words: str, parse: LaunchParse | Missing) -> None:
    judged = judge(
        unit.the_launcher_accepts_its_options, launch_command=command(line), launch_parse=parse
    )
    right = "skip" if parse is NOBODY else "ok"
    assert judged.statuses == (["fail"] if words else [right])
    assert not words or words in judged.findings[0].message


def test_what_the_parser_says_is_said_once() -> None:
    refused = LaunchParse(
        launcher="deepspeed",
        accepted=False,
        error="argument --num_gpus: invalid int value: 'two'",
    )
    given = command("deepspeed --num_gpus two t.py")
    judged = judge(
        unit.the_launcher_accepts_its_options, launch_command=given, launch_parse=refused
    )
    assert judged.statuses == ["fail"]
    assert "invalid int value" in judged.findings[0].message
