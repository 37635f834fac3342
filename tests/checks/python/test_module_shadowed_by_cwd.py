"""Rows of `module-shadowed-by-cwd`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Package, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import module_shadowed_by_cwd
from tests.checks.python.support import SITE


@pytest.mark.parametrize(
    ("shadowed", "location", "expected"),
    [
        ({}, SITE, "ok"),
        ({"deepspeed": "/job/deepspeed.py"}, SITE, "fail"),
        ({"deepspeed": "/job/deepspeed/__init__.py"}, SITE, "fail"),
        # A checkout of DeepSpeed itself, installed editable.
        ({"deepspeed": "/src/DeepSpeed/deepspeed/__init__.py"}, "/src/DeepSpeed", "ok"),
    ],
)
def test_rows(shadowed: dict[str, str], location: str, expected: str) -> None:
    package = Package(name="deepspeed", version="0.19.8", location=location)
    facts = Packages(packages={"deepspeed": package}, shadowed=shadowed)
    assert judge(module_shadowed_by_cwd.no_file_hides_a_package, packages=facts).status == expected
