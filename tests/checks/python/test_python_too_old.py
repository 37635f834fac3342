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
        ("3.11.7", packages(torch="2.15.0", transformers="5.23.0"), "ok"),
        ("3.8.10", packages(torch="2.4.1"), "ok"),
        ("3.7.9", packages(), "ok"),
        ("3.7.9", packages(deepspeed="0.14.5"), "ok"),  # its classifiers name 3.6 and 3.7
        ("3.7.9", packages(deepspeed="0.16.2"), "ok"),
        ("3.7.9", packages(deepspeed="0.16.3"), "fail"),
        ("3.7.9", packages(deepspeed="0.19.8"), "fail"),
        ("3.8.10", packages(deepspeed="0.19.8"), "ok"),
        ("3.10.12", packages(torch="2.15.0"), "fail"),
        ("3.10.12", packages(torch="2.14.0", transformers="4.57.0"), "ok"),
        ("3.10.12", packages(transformers="5.23.0"), "fail"),
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
