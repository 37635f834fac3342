"""Rows of `dependency-version-conflict`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.testing import judge
from dsdoctor_checks.python import dependency_version_conflict
from tests.checks.python.support import deepspeed_live, packages, patient, torch_live

INSTALLED = packages(deepspeed="0.19.8", torch="2.13.0+cpu", pydantic="1.10.13", numpy="2.1.0rc1")


@pytest.mark.parametrize(
    ("requirement", "broken", "expected"),
    [
        pytest.param("torch>=2.0.0", False, "ok", id="torch is newer than the minimum"),
        pytest.param("torch==2.13.0", False, "ok", id="a local version label does not count"),
        pytest.param(
            "numpy>=2", False, "ok", id="a release candidate of the required major version"
        ),
        pytest.param(
            "pydantic>=2.0.0", False, "warn", id="pydantic is too old, but deepspeed imports"
        ),
        pytest.param(
            "pydantic>=2.0.0", True, "fail", id="pydantic is too old and deepspeed does not import"
        ),
        pytest.param(
            "Pydantic >= 2 ; python_version < '3.9'",
            False,
            "ok",
            id="a requirement for older Pythons alone",
        ),
        pytest.param(
            "pydantic>=2 ; extra == 'dev'",
            False,
            "ok",
            id="a requirement of an extra that is not installed",
        ),
        pytest.param(
            "pydantic @ https://example.org/p.whl",
            False,
            "ok",
            id="a requirement by URL has no version to compare",
        ),
        pytest.param("hjson", False, "ok", id="hjson is missing, but deepspeed imports"),
        pytest.param("hjson", True, "fail", id="hjson is missing and deepspeed does not import"),
        pytest.param("this is no requirement", True, "ok", id="a line that is not a requirement"),
    ],
)
def test_rows(requirement: str, *, broken: bool, expected: str) -> None:
    found = msgspec.structs.replace(INSTALLED, requires={"deepspeed": (requirement,)})
    live = deepspeed_live("ImportError" if broken else "")
    facts: dict[str, Any] = {
        "packages": found,
        "patient": patient(),
        "torch_live": torch_live(),
        "deep_speed_live": live,
    }
    assert judge(dependency_version_conflict.requirements_are_met, **facts).status == expected
