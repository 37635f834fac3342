from __future__ import annotations

import pytest

from dsdoctor.api import ImportOutcome, TorchLive
from dsdoctor_checks.torch import torch_cuda_init_failed
from tests.checks import machines as m

CHECK = torch_cuda_init_failed.cuda_initialises.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.live(devices=(m.device("A100"),)), m.kernel(), m.gpus("A100"), m.NO_ENV, m.ANY), []),
        (
            (m.live(101, cuda_error="invalid"), m.kernel(), m.gpus("A100"), m.NO_ENV, m.ANY),
            ["fail"],
        ),
        ((m.live(802), m.kernel(), m.gpus("A100"), m.NO_ENV, m.ANY), []),
        ((m.live(100), m.NO_GPU, m.ABSENT, m.NO_ENV, m.ANY), ["skip"]),
        (
            (
                m.live(devices=(m.device("A100", ok=False, error="boom"),)),
                m.kernel(),
                m.gpus("A100"),
                m.NO_ENV,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                m.live(devices=(m.device("A100", ok=False, error="busy", error_code=46),)),
                m.kernel(),
                m.gpus("A100"),
                m.NO_ENV,
                m.ANY,
            ),
            [],
        ),
        (
            (
                TorchLive(
                    imported=ImportOutcome(ok=True),
                    died="hung for 120 s",
                    last_step="torch.cuda.init",
                ),
                m.kernel(),
                m.gpus("A100"),
                m.NO_ENV,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (
                TorchLive(imported=ImportOutcome(ok=False, error_type="OSError")),
                m.kernel(),
                m.gpus("A100"),
                m.NO_ENV,
                m.ANY,
            ),
            ["skip"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
