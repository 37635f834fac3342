"""Rows of `several-copies-of-a-package`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Package, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import several_copies_of_a_package


@pytest.mark.parametrize(
    ("name", "duplicates", "expected"),
    [
        ("torch", (), "ok"),
        ("torch", ("/home/u/.local/lib",), "warn"),
        ("torch", ("/env",), "ok"),
        ("numpy", ("/usr/lib/python3/dist-packages",), "ok"),
    ],
)
def test_rows(name: str, duplicates: tuple[str, ...], expected: str) -> None:
    package = Package(name=name, version="2.0", location="/env", duplicates=duplicates)
    facts = Packages(packages={name: package})
    assert (
        judge(several_copies_of_a_package.packages_are_there_once, packages=facts).status
        == expected
    )
