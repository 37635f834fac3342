from __future__ import annotations

import pytest

from dsdoctor.model.facts.gpu import GpuFabric
from dsdoctor_checks.driver import fabric_manager_not_running
from tests.checks import machines as m

CHECK = fabric_manager_not_running.fabric_is_up.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ((m.gpus("H100", fabric=GpuFabric(state=3)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY), []),
        ((m.gpus("H100", fabric=GpuFabric(state=0)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY), []),
        (
            (m.gpus("H100", fabric=GpuFabric(state=1)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY),
            ["fail"],
        ),
        (
            (m.gpus("H100", fabric=GpuFabric(state=2)), m.nvml(), m.NOT_ASKED, m.NO_ENV, m.ANY),
            ["fail"],
        ),
        ((m.gpus("H100", fabric=GpuFabric(state=2)), m.nvml(), m.live(), m.NO_ENV, m.ANY), []),
        (
            (
                m.gpus("H100", fabric=GpuFabric(state=1), mig_mode=True),
                m.nvml(),
                m.NOT_ASKED,
                m.NO_ENV,
                m.ANY,
            ),
            [],
        ),
        (
            (
                m.gpus("H100", fabric=GpuFabric(state=3, status=15)),
                m.nvml(),
                m.NOT_ASKED,
                m.NO_ENV,
                m.ANY,
            ),
            ["fail"],
        ),
        (
            (m.gpus("H100", fabric=GpuFabric(state=None)), m.nvml(), m.live(802), m.NO_ENV, m.ANY),
            ["fail"],
        ),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
