"""Rows of `python-too-old`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import python_too_old
from tests.checks.python.support import packages, patient, torch_live


@pytest.mark.parametrize(
    ("version", "found", "expected"),
    [
        pytest.param(
            "3.11.7",
            packages(torch="2.15.0", transformers="5.23.0"),
            "ok",
            id="Python 3.11 with torch and transformers newer than the tables",
        ),
        pytest.param("3.8.10", packages(torch="2.4.1"), "ok", id="Python 3.8 with torch 2.4"),
        pytest.param("3.7.9", packages(), "ok", id="Python 3.7 without packages"),
        pytest.param(
            "3.7.9", packages(deepspeed="0.14.5"), "ok", id="Python 3.7 with deepspeed 0.14.5"
        ),  # its classifiers name 3.6 and 3.7
        pytest.param(
            "3.7.9",
            packages(deepspeed="0.16.2"),
            "ok",
            id="Python 3.7 with deepspeed 0.16.2, the last for it",
        ),
        pytest.param(
            "3.7.9",
            packages(deepspeed="0.16.3"),
            "fail",
            id="Python 3.7 is too old for deepspeed 0.16.3",
        ),
        pytest.param(
            "3.7.9",
            packages(deepspeed="0.19.8"),
            "fail",
            id="Python 3.7 is too old for deepspeed 0.19.8",
        ),
        pytest.param(
            "3.8.10", packages(deepspeed="0.19.8"), "ok", id="Python 3.8 with deepspeed 0.19.8"
        ),
        pytest.param(
            "3.10.12", packages(torch="2.15.0"), "fail", id="Python 3.10 is too old for torch 2.15"
        ),
        pytest.param(
            "3.10.12",
            packages(torch="2.14.0", transformers="4.57.0"),
            "ok",
            id="Python 3.10 with torch 2.14 and transformers 4.57",
        ),
        pytest.param(
            "3.10.12",
            packages(transformers="5.23.0"),
            "fail",
            id="Python 3.10 is too old for transformers 5.23",
        ),
    ],
)
def test_rows(version: str, found: Packages, expected: str) -> None:
    check = python_too_old.python_is_new_enough
    assert judge(check, patient=patient(version=version), packages=found).status == expected


def test_a_torch_that_imports_is_no_failure() -> None:
    facts: dict[str, Any] = {
        "patient": patient(version="3.10.12"),
        "packages": packages(torch="2.15.0"),
        "torch_live": torch_live(),
    }
    assert judge(python_too_old.python_is_new_enough, **facts).status == "warn"
