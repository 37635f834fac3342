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
        pytest.param({"environment": m.NO_ENV}, ["ok"], id="no setting"),
        pytest.param(
            {"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")},
            ["ok"],
            id="a known option",
        ),
        pytest.param(
            {"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="a:1", PYTORCH_ALLOC_CONF="a:1")},
            ["ok"],
            id="both variables with the same value",
        ),
        pytest.param(
            {
                "environment": m.env(
                    PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True",
                    PYTORCH_ALLOC_CONF="max_split_size_mb:512",
                )
            },
            ["warn"],
            id="both variables with different values",
        ),
        pytest.param(
            {"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segment:True")},
            ["fail"],
            id="one letter of the option is missing",
        ),
        pytest.param(
            {"environment": m.env(PYTORCH_CUDA_ALLOC_CONF="expandable_segments=True")},
            ["fail"],
            id="an equals sign in place of the colon",
        ),
        pytest.param(
            {
                "environment": m.env(
                    PYTORCH_CUDA_ALLOC_CONF="roundup_power2_divisions:[256:1,512:2,>:4]"
                )
            },
            ["ok"],
            id="a list of values in brackets",
        ),
        pytest.param(
            {"environment": m.env(PYTORCH_ALLOC_CONF="brand_new_option:1")},
            ["ok"],
            id="an option that the table does not know yet",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("torch", "name", "expected"),
    [
        pytest.param(
            m.torch("2.9.1"),
            "PYTORCH_ALLOC_CONF",
            "warn",
            id="torch 2.9 does not read the newer name",
        ),
        pytest.param(
            m.torch("2.6.0"),
            "PYTORCH_ALLOC_CONF",
            "warn",
            id="torch 2.6 does not read the newer name",
        ),
        pytest.param(
            m.torch("2.10.0"), "PYTORCH_ALLOC_CONF", "ok", id="torch 2.10 reads the newer name"
        ),
        pytest.param(
            m.torch("2.9.1"), "PYTORCH_CUDA_ALLOC_CONF", "ok", id="torch 2.9 reads the older name"
        ),
        pytest.param(
            m.torch("2.9.1+cpu", None),
            "PYTORCH_ALLOC_CONF",
            "ok",
            id="a torch build for CPUs has no CUDA allocator",
        ),
    ],
)
def test_the_newer_name_is_read_since_2_10(torch: TorchBuild, name: str, expected: str) -> None:
    env = m.env(**{name: "expandable_segments:True"})
    (finding,) = judge(CHECK, environment=env, torch_build=torch).findings
    assert finding.status.value == expected
    if expected == "warn":
        assert finding.hint == "run `export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True`"
