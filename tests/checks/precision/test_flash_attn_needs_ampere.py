"""Rows of `flash-attn-needs-ampere`: what a command requests, and the GPUs."""

from __future__ import annotations

import pytest

from dsdoctor.probes.command_line import parse_command
from dsdoctor.testing import judge
from dsdoctor_checks.precision import flash_attn_needs_ampere
from tests.checks import machines as m


@pytest.mark.parametrize(
    ("line", "card", "expected"),
    [
        pytest.param(
            "deepspeed t.py --attn_implementation flash_attention_2", "T4", "fail", id="T4"
        ),
        pytest.param(
            "torchrun t.py --attn-implementation=flash_attention_2", "V100", "fail", id="="
        ),
        pytest.param("llamafactory-cli train x.yaml --flash_attn fa2", "T4", "fail", id="fa2"),
        pytest.param("deepspeed t.py --use_flash_attention_2", "T4", "fail", id="a switch"),
        pytest.param("deepspeed t.py --use_flash_attention_2 false", "T4", "skip", id="off"),
        pytest.param("deepspeed t.py --attn_implementation sdpa", "T4", "skip", id="sdpa"),
        pytest.param("deepspeed t.py --flash_attn auto", "T4", "skip", id="auto"),
        pytest.param(
            "deepspeed t.py --attn_implementation flash_attention_2", "A100", "ok", id="A100"
        ),
    ],
)
def test_rows(line: str, card: str, expected: str) -> None:
    judged = judge(
        flash_attn_needs_ampere.gpus_run_flash_attention,
        launch_command=parse_command(line.split()),
        gpus=m.gpus(card),
        environment=m.NO_ENV,
    )
    assert judged.status == expected
