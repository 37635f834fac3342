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
        (patient(kind="conda", user_site=USER), f"{USER}/torch/__init__.py", "warn"),
        (patient(kind="conda", user_site=USER), f"{SITE}/torch/__init__.py", "ok"),
        (patient(kind="conda", user_site=USER), "", "ok"),
        (patient(user_site=None), f"{SITE}/torch/__init__.py", "skip"),
        (patient(kind="system", user_site=USER), f"{USER}/torch/__init__.py", "skip"),
    ],
)
def test_rows(who: Patient, origin: str, expected: str) -> None:
    facts: dict[str, Any] = {"patient": who, "packages": Packages(origins={"torch": origin})}
    assert judge(user_site_shadows_env.env_is_its_own, **facts).status == expected
