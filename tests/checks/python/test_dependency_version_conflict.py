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
        ("torch>=2.0.0", False, "ok"),
        ("torch==2.13.0", False, "ok"),
        ("numpy>=2", False, "ok"),
        ("pydantic>=2.0.0", False, "warn"),
        ("pydantic>=2.0.0", True, "fail"),
        ("Pydantic >= 2 ; python_version < '3.9'", False, "ok"),
        ("pydantic>=2 ; extra == 'dev'", False, "ok"),
        ("pydantic @ https://example.org/p.whl", False, "ok"),
        ("hjson", False, "ok"),
        ("hjson", True, "fail"),
        ("this is no requirement", True, "ok"),
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
