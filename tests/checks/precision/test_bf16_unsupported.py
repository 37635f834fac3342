from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor_checks.precision import bf16_unsupported
from tests.checks import machines as m

CHECK = bf16_unsupported.hardware_has_bf16.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (
                m.gpus("A100"),
                m.NOT_ASKED,
                m.torch(),
                RunNeeds(config={"bf16": {"enabled": True}}),
                m.NO_ENV,
            ),
            ["ok"],
        ),
        (
            (
                m.gpus("V100"),
                m.NOT_ASKED,
                m.torch(),
                RunNeeds(config={"bf16": {"enabled": True}}),
                m.NO_ENV,
            ),
            ["fail"],
        ),
        (
            (
                m.gpus("T4"),
                m.live(bf16_emulated=True),
                m.torch(),
                RunNeeds(config={"bf16": {"enabled": True}}),
                m.NO_ENV,
            ),
            ["fail"],
        ),
        ((m.gpus("T4"), m.NOT_ASKED, m.torch(), m.ANY, m.NO_ENV), ["skip"]),
        (
            (
                m.gpus("T4"),
                m.NOT_ASKED,
                m.torch(),
                RunNeeds(config={"bf16": {"enabled": "auto"}}),
                m.NO_ENV,
            ),
            ["skip"],
        ),
        (
            (
                m.ABSENT,
                m.NOT_ASKED,
                m.torch(),
                RunNeeds(config={"bf16": {"enabled": True}}),
                m.NO_ENV,
            ),
            ["skip"],
        ),
        (
            (
                m.gpus("T4"),
                m.NOT_ASKED,
                m.torch(),
                RunNeeds(config={"bfloat16": {"enabled": True}}),
                m.NO_ENV,
            ),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
