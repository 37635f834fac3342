"""Rows of `user-site-shadows-env`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Packages, Patient
from dsdoctor.testing import judge
from dsdoctor_checks.python import user_site_shadows_env
from tests.checks.python.support import SITE, patient

USER = "/home/u/.local/lib/python3.11/site-packages"


@pytest.mark.parametrize(
    ("who", "origin", "expected"),
    [
        pytest.param(
            patient(kind="conda", user_site=USER),
            f"{USER}/torch/__init__.py",
            "warn",
            id="torch comes from the user's folder in a conda environment",
        ),
        pytest.param(
            patient(kind="conda", user_site=USER),
            f"{SITE}/torch/__init__.py",
            "ok",
            id="torch comes from the conda environment itself",
        ),
        pytest.param(
            patient(kind="conda", user_site=USER),
            "",
            "ok",
            id="torch is not installed in the conda environment",
        ),
        pytest.param(
            patient(user_site=None),
            f"{SITE}/torch/__init__.py",
            "skip",
            id="a venv does not read the user's folder",
        ),
        pytest.param(
            patient(kind="system", user_site=USER),
            f"{USER}/torch/__init__.py",
            "skip",
            id="the system's Python reads the user's folder by design",
        ),
    ],
)
def test_rows(who: Patient, origin: str, expected: str) -> None:
    facts: dict[str, Any] = {"patient": who, "packages": Packages(origins={"torch": origin})}
    assert judge(user_site_shadows_env.env_is_its_own, **facts).status == expected
