from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.torch import alloc_conf_unknown
from tests.checks import machines as m

CHECK = alloc_conf_unknown.allocator_setting_is_read


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"environment": m.NO_ENV}, ["ok"]),
        ({"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")}, ["ok"]),
        ({"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="a:1", PYTORCH_ALLOC_CONF="a:1")}, ["ok"]),
        (
            {
                "environment": m.env(
                    PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                    PYTORCH_ALLOC_CONF="max_split_size_mb:512",
                )
            },
            ["warn"],
        ),
        ({"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segment:True")}, ["fail"]),
        ({"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments=True")}, ["fail"]),
        (
            {
                "environment": m.env(
                    PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:[256:1,512:2,>:4]"
                )
            },
            ["ok"],
        ),
        ({"environment": m.env(PYTORCH_ALLOC_CONF="brand_new_option:1")}, ["ok"]),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("torch", "name", "expected"),
    [
        (m.torch("2.9.1"), "PYTORCH_ALLOC_CONF", "warn"),
        (m.torch("2.6.0"), "PYTORCH_ALLOC_CONF", "warn"),
        (m.torch("2.10.0"), "PYTORCH_ALLOC_CONF", "ok"),
        (m.torch("2.9.1"), "PYTORCH_CUDA_ALLOC_CONF", "ok"),
        (m.torch("2.9.1+cpu", None), "PYTORCH_ALLOC_CONF", "ok"),
    ],
)
def test_the_newer_name_is_read_since_2_10(torch: TorchBuild, name: str, expected: str) -> None:
    env = m.env(**{name: "expandable_segments:True"})
    (finding,) = judge(CHECK, environment=env, torch_build=torch).findings
    assert finding.status.value == expected
    if expected == "warn":
        assert finding.hint == "run `export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
