from __future__ import annotations

import pytest

from dsdoctor.api import RunNeeds
from dsdoctor_checks.torch import gpu_arch_unsupported
from tests.checks import machines as m

CHECK = gpu_arch_unsupported.torch_has_code_for_gpus.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (
                m.torch(),
                m.live(arch_list=("sm_75", "sm_80", "sm_86", "sm_90")),
                m.gpus("4090"),
                m.LINUX,
                m.NO_ENV,
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.live(arch_list=("sm_75", "sm_80")),
                m.gpus("V100"),
                m.LINUX,
                m.NO_ENV,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (m.torch("2.5.1+cu124", "12.4"), m.NOT_ASKED, m.gpus("5090"), m.LINUX, m.NO_ENV, m.ANY),
            ["fail"],
        ),
        ((m.torch("2.9.1", "12.8"), m.NOT_ASKED, m.gpus("V100"), m.LINUX, m.NO_ENV, m.ANY), ["ok"]),
        ((m.torch(), m.live(arch_list=()), m.gpus("A100"), m.LINUX, m.NO_ENV, m.ANY), ["ok"]),
        (
            (
                m.torch("2.99.0", "99.0"),
                m.live(arch_list=()),
                m.gpus("A100"),
                m.LINUX,
                m.NO_ENV,
                m.ANY,
            ),
            ["skip"],
        ),
        (
            (
                m.torch(),
                m.live(arch_list=("sm_80", "compute_80")),
                m.gpus("5090"),
                m.LINUX,
                m.NO_ENV,
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.live(arch_list=("sm_80",)),
                m.gpus("A100", "V100"),
                m.LINUX,
                m.NO_ENV,
                m.ANY,
            ),
            ["warn"],
        ),
        (
            (
                m.torch(),
                m.live(arch_list=("sm_80",)),
                m.gpus("A100", "V100"),
                m.LINUX,
                m.NO_ENV,
                RunNeeds(gpus=("1",)),
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                m.live(arch_list=("sm_80",)),
                m.gpus("A100", "V100"),
                m.LINUX,
                m.env(CUDA_VISIBLE_DEVICES="0"),
                m.ANY,
            ),
            ["ok"],
        ),
        (
            (m.torch("2.13.0+cpu", None), m.live(), m.gpus("A100"), m.LINUX, m.NO_ENV, m.ANY),
            ["skip"],
        ),
        ((m.torch(), m.live(), m.ABSENT, m.LINUX, m.NO_ENV, m.ANY), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
