from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor_checks.precision import fp16_unsupported
from tests.checks import machines as m

CHECK = fp16_unsupported.deepspeed_accepts_fp16.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (m.gpus("V100"), m.ABSENT, RunNeeds(config={"fp16": {"enabled": True}}), m.NO_ENV),
            ["ok"],
        ),
        (
            (m.gpus("P100"), m.ABSENT, RunNeeds(config={"fp16": {"enabled": True}}), m.NO_ENV),
            ["fail"],
        ),
        (
            (
                m.gpus("P100"),
                m.ABSENT,
                RunNeeds(config={"fp16": {"enabled": True}}),
                m.env(DS_ALLOW_DEPRECATED_FP16="1"),
            ),
            ["ok"],
        ),
        ((m.gpus("P100"), m.ABSENT, m.ANY, m.NO_ENV), ["skip"]),
        ((m.ABSENT, m.ABSENT, RunNeeds(config={"fp16": {"enabled": True}}), m.NO_ENV), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
