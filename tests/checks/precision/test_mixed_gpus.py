from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor_checks.precision import mixed_gpus
from tests.checks import machines as m

CHECK = mixed_gpus.gpus_are_alike.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.gpus("A100", "A100"), m.ANY, m.NO_ENV, mixed_gpus.MixedGpus()), ["ok"]),
        ((m.gpus("A100", "V100"), m.ANY, m.NO_ENV, mixed_gpus.MixedGpus()), ["warn"]),
        (
            (m.gpus("A100", "V100"), RunNeeds(gpus=("0",)), m.NO_ENV, mixed_gpus.MixedGpus()),
            ["skip"],
        ),
        (
            (
                m.gpus("V100", "A100", "A100"),
                m.ANY,
                m.env(CUDA_VISIBLE_DEVICES="1,2", CUDA_DEVICE_ORDER="PCI_BUS_ID"),
                mixed_gpus.MixedGpus(),
            ),
            ["ok"],
        ),
        ((m.gpus("A100"), m.ANY, m.NO_ENV, mixed_gpus.MixedGpus()), ["skip"]),
        (
            (
                Gpus(gpus=(m.gpu("A100"), m.gpu("A100", 1, memory_total_bytes=40 << 30))),
                m.ANY,
                m.NO_ENV,
                mixed_gpus.MixedGpus(),
            ),
            ["warn"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
