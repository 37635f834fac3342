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
        pytest.param(
            "accelerate launch --mixed_precision fp8 train.py",
            ("H100", "H100"),
            ["ok"],
            id="accelerate with fp8 on two H100",
        ),
        pytest.param(
            "accelerate launch --mixed_precision fp8 train.py",
            ("4090",),
            ["ok"],
            id="accelerate with fp8 on an RTX 4090",
        ),
        pytest.param(
            "accelerate launch --mixed_precision fp8 train.py",
            ("A100",),
            ["fail"],
            id="accelerate with fp8 on an A100",
        ),
        pytest.param(
            "accelerate launch --mixed_precision=fp8 train.py",
            ("H100", "A100"),
            ["fail"],
            id="accelerate with fp8 on an H100 and an A100",
        ),
        pytest.param("deepspeed train.py --tf32 True", ("A100",), ["ok"], id="tf32 on an A100"),
        pytest.param("deepspeed train.py --tf32", ("V100",), ["warn"], id="tf32 on a V100"),
        pytest.param(
            "torchrun train.py --mixed_precision fp8",
            ("A100",),
            ["warn"],
            id="a script's own fp8 option on an A100",
        ),
        pytest.param(
            "deepspeed train.py --tf32 False", ("V100",), ["skip"], id="tf32 switched off on a V100"
        ),
        pytest.param(
            "deepspeed train.py --bf16 --lr 1",
            ("V100",),
            ["warn"],
            id="a script's own bf16 option on a V100",
        ),
        pytest.param(
            "deepspeed train.py --bf16=true",
            ("T4",),
            ["warn"],
            id="a script's own bf16 option with a value on a T4",
        ),
        pytest.param(
            "deepspeed train.py --fp16", ("V100",), ["skip"], id="fp16 needs no newer GPU"
        ),
        pytest.param(
            "deepspeed train.py --bf16_output x",
            ("V100",),
            ["skip"],
            id="an option that merely begins with bf16",
        ),
        pytest.param(
            "deepspeed train.py --bf16 --tf32 1",
            ("V100",),
            ["warn", "warn"],
            id="bf16 and tf32 on a V100",
        ),
        pytest.param("deepspeed train.py --tf32", (), ["skip"], id="tf32, and no GPU is there"),
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
