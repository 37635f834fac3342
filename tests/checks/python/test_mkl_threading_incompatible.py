"""Rows of `mkl-threading-incompatible`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import mkl_threading_incompatible
from tests.checks.python.support import packages

CONDA = packages(torch="2.1.2", mkl_service="2.4.0")


@pytest.mark.parametrize(
    ("variables", "installed", "expected"),
    [
        pytest.param({"MKL_THREADING_LAYER": "INTEL"}, CONDA, "warn", id="Intel's threads"),
        pytest.param({"MKL_THREADING_LAYER": "GNU"}, CONDA, "ok", id="GNU's threads"),
        pytest.param({}, CONDA, "ok", id="not set"),
        pytest.param(
            {"MKL_THREADING_LAYER": "INTEL", "MKL_SERVICE_FORCE_INTEL": "1"}, CONDA, "ok",
            id="forced on purpose",
        ),
        pytest.param(
            {"MKL_THREADING_LAYER": "INTEL"}, packages(torch="2.1.2"), "ok", id="without mkl-service"
        ),
    ],
)  # fmt: skip
def test_rows(variables: dict[str, str], installed: Packages, expected: str) -> None:
    judged = judge(
        mkl_threading_incompatible.threads_of_mkl_suit_torch,
        packages=installed,
        environment=Environment(variables=variables),
    )
    assert judged.status == expected
