"""Rows of `several-copies-of-a-package`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Package, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import several_copies_of_a_package


@pytest.mark.parametrize(
    ("name", "duplicates", "expected"),
    [
        pytest.param("torch", (), "ok", id="one copy of torch"),
        pytest.param(
            "torch", ("/home/u/.local/lib",), "warn", id="a second torch in the user's folder"
        ),
        pytest.param("torch", ("/env",), "ok", id="the same torch seen twice"),
        pytest.param(
            "numpy",
            ("/usr/lib/python3/dist-packages",),
            "ok",
            id="a second numpy, a package that is not judged",
        ),
    ],
)
def test_rows(name: str, duplicates: tuple[str, ...], expected: str) -> None:
    package = Package(name=name, version="2.0", location="/env", duplicates=duplicates)
    facts = Packages(packages={name: package})
    assert (
        judge(several_copies_of_a_package.packages_are_there_once, packages=facts).status
        == expected
    )
