from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.precision import precision_flag_unsupported
from tests.checks import machines as m
from tests.checks.launch.rows import command

CHECK = precision_flag_unsupported.gpus_support_requested_formats


@pytest.mark.parametrize(
    ("line", "cards", "expected"),
    [
        ("accelerate launch --mixed_precision fp8 train.py", ("H100", "H100"), ["ok"]),
        ("accelerate launch --mixed_precision fp8 train.py", ("4090",), ["ok"]),
        ("accelerate launch --mixed_precision fp8 train.py", ("A100",), ["fail"]),
        ("accelerate launch --mixed_precision=fp8 train.py", ("H100", "A100"), ["fail"]),
        ("deepspeed train.py --tf32 True", ("A100",), ["ok"]),
        ("deepspeed train.py --tf32", ("V100",), ["warn"]),
        ("torchrun train.py --mixed_precision fp8", ("A100",), ["warn"]),
        ("deepspeed train.py --tf32 False", ("V100",), ["skip"]),
        ("deepspeed train.py --bf16 --lr 1", ("V100",), ["warn"]),
        ("deepspeed train.py --bf16=true", ("T4",), ["warn"]),
        ("deepspeed train.py --fp16", ("V100",), ["skip"]),
        ("deepspeed train.py --bf16_output x", ("V100",), ["skip"]),
        ("deepspeed train.py --bf16 --tf32 1", ("V100",), ["warn", "warn"]),
        ("deepspeed train.py --tf32", (), ["skip"]),
    ],
)
def test_verdict(line: str, cards: tuple[str, ...], expected: list[str]) -> None:
    found = judge(
        CHECK, launch_command=command(line), gpus=m.gpus(*cards), environment=m.NO_ENV
    ).findings
    assert m.words(found) == expected


def test_only_the_chosen_gpus_count() -> None:
    line = command("deepspeed train.py --tf32")
    both = m.gpus("A100", "V100")
    one = RunNeeds(gpus=("0",))
    assert judge(
        CHECK, launch_command=line, gpus=both, run_needs=one, environment=m.NO_ENV
    ).statuses == ["ok"]
    assert judge(CHECK, launch_command=line, gpus=both, environment=m.NO_ENV).statuses == ["warn"]


def test_what_the_config_says_already_is_not_said_twice() -> None:
    run = RunNeeds(config={"bf16": {"enabled": True}})
    line = command("deepspeed train.py --bf16")
    assert judge(
        CHECK, launch_command=line, gpus=m.gpus("V100"), run_needs=run, environment=m.NO_ENV
    ).statuses == ["ok"]
