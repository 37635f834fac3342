from __future__ import annotations

import pytest

from dsdoctor.api import Gpus, RunNeeds
from dsdoctor_checks.driver import visible_devices_invalid
from tests.checks import machines as m

CHECK = visible_devices_invalid.names_exist.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.gpus("A100"), m.ANY, m.NO_ENV), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="0,1")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="1, 0")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="-1")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="0,-1")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="GPU-1a1")), []),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="0,2")), ["fail"]),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="GPU-9")), ["fail"]),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="0,0")), ["fail"]),
        ((m.gpus("A100", "A100"), m.ANY, m.env(CUDA_VISIBLE_DEVICES="cuda:0")), ["fail"]),
        (
            (m.gpus("A100", "A100"), RunNeeds(gpus=("1",)), m.env(CUDA_VISIBLE_DEVICES="0")),
            ["fail"],
        ),
        ((m.gpus("A100", "A100"), RunNeeds(gpus=("1",)), m.env(CUDA_VISIBLE_DEVICES="1")), []),
        ((m.gpus("A100"), RunNeeds(gpus=("7",)), m.NO_ENV), ["fail"]),
        ((Gpus(), RunNeeds(gpus=("7",)), m.NO_ENV), []),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
