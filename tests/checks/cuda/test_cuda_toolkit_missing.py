from __future__ import annotations

import pytest

from dsdoctor.api import DeepSpeedInstall, RunNeeds
from dsdoctor_checks.cuda import cuda_toolkit_missing
from tests.checks import machines as m

CHECK = cuda_toolkit_missing.toolkit_is_there.function


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        (
            (
                m.torch(),
                m.toolkits(m.toolkit()),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            [],
        ),
        (
            (m.torch(), m.toolkits(), m.DEEPSPEED, m.ADAM, m.NO_ENV, m.kernel(), m.gpus("A100")),
            ["fail"],
        ),
        (
            (
                m.torch(),
                m.toolkits(),
                m.DEEPSPEED,
                RunNeeds(build_ops=("FUSED_ADAM",)),
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["fail"],
        ),
        (
            (m.torch(), m.toolkits(), m.DEEPSPEED, m.ANY, m.NO_ENV, m.kernel(), m.gpus("A100")),
            ["warn"],
        ),
        (
            (
                m.torch(),
                m.toolkits(m.toolkit(version=None, error="timed out after 10 s")),
                m.DEEPSPEED,
                m.ADAM,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                m.toolkits(),
                DeepSpeedInstall(
                    version="0.19.8",
                    installed_ops={"fused_adam": True},
                    built_for_torch="2.9",
                    built_for_cuda="12.8",
                ),
                m.ADAM,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["ok"],
        ),
        (
            (m.torch(), m.toolkits(), m.DEEPSPEED, m.OFFLOAD, m.NO_ENV, m.kernel(), m.gpus("A100")),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.toolkits(),
                DeepSpeedInstall(version="0.19.7"),
                m.OFFLOAD,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["fail"],
        ),
        (
            (
                m.torch(),
                m.toolkits(),
                m.DEEPSPEED,
                RunNeeds(config={"optimizer": {"type": "AdamW", "params": {"torch_adam": True}}}),
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["ok"],
        ),
        (
            (
                m.torch(),
                m.toolkits(),
                m.DEEPSPEED,
                RunNeeds(config={}),
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["ok"],
        ),
        (
            (
                m.torch("2.13.0+cpu", None),
                m.toolkits(),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["skip"],
        ),
        (
            (
                m.torch("2.9.1", None, hip="6.4"),
                m.toolkits(),
                m.DEEPSPEED,
                m.ANY,
                m.NO_ENV,
                m.kernel(),
                m.gpus("A100"),
            ),
            ["skip"],
        ),
        ((m.torch(), m.toolkits(), m.DEEPSPEED, m.ANY, m.NO_ENV, m.NO_GPU, m.ABSENT), ["skip"]),
    ],
)
def test_verdict(facts: tuple[object, ...], expected: list[str]) -> None:
    assert m.words(CHECK(*facts)) == expected
