from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor_checks.precision import precision_flag_unsupported
from tests.checks import machines as m
from tests.checks.launch.rows import command

CHECK = precision_flag_unsupported.gpus_support_requested_formats.function


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
    found = CHECK(command(line), m.gpus(*cards), m.NOT_ASKED, m.ANY, m.NO_ENV)
    assert m.words(found) == expected


def test_only_the_chosen_gpus_count() -> None:
    line = command("deepspeed train.py --tf32")
    both = m.gpus("A100", "V100")
    one = RunNeeds(gpus=("0",))
    assert m.words(CHECK(line, both, m.NOT_ASKED, one, m.NO_ENV)) == ["ok"]
    assert m.words(CHECK(line, both, m.NOT_ASKED, m.ANY, m.NO_ENV)) == ["warn"]


def test_what_the_config_says_already_is_not_said_twice() -> None:
    run = RunNeeds(config={"bf16": {"enabled": True}})
    line = command("deepspeed train.py --bf16")
    assert m.words(CHECK(line, m.gpus("V100"), m.NOT_ASKED, run, m.NO_ENV)) == ["ok"]
