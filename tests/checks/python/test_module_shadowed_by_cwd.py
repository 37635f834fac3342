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
        pytest.param(
            {}, SITE, "ok", id="nothing in the working directory has the name of a package"
        ),
        pytest.param(
            {"deepspeed": "/job/deepspeed.py"},
            SITE,
            "fail",
            id="deepspeed.py in the working directory",
        ),
        pytest.param(
            {"deepspeed": "/job/deepspeed/__init__.py"},
            SITE,
            "fail",
            id="a package deepspeed in the working directory",
        ),
        # A checkout of DeepSpeed itself, installed editable.
        pytest.param(
            {"deepspeed": "/src/DeepSpeed/deepspeed/__init__.py"},
            "/src/DeepSpeed",
            "ok",
            id="the working directory is the source that is installed",
        ),
    ],
)
def test_rows(shadowed: dict[str, str], location: str, expected: str) -> None:
    package = Package(name="deepspeed", version="0.19.8", location=location)
    facts = Packages(packages={"deepspeed": package}, shadowed=shadowed)
    assert judge(module_shadowed_by_cwd.no_file_hides_a_package, packages=facts).status == expected
