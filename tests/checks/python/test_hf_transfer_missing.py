"""Rows of `hf-transfer-missing`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Environment, Packages
from dsdoctor.testing import judge
from dsdoctor_checks.python import hf_transfer_missing
from tests.checks.python.support import packages

ON = {"HF_HUB_ENABLE_HF_TRANSFER": "1"}
OLD = packages(huggingface_hub="0.34.4")


@pytest.mark.parametrize(
    ("variables", "installed", "expected"),
    [
        pytest.param(ON, OLD, "warn", id="the variable of the image, and no package"),
        pytest.param({"HF_HUB_ENABLE_HF_TRANSFER": "true"}, OLD, "warn", id="written as a word"),
        pytest.param(
            ON, packages(huggingface_hub="0.34.4", hf_transfer="0.1.9"), "ok", id="it is installed"
        ),
        pytest.param({"HF_HUB_ENABLE_HF_TRANSFER": "0"}, OLD, "ok", id="the variable is off"),
        pytest.param({}, OLD, "ok", id="the variable is not set"),
        pytest.param(
            ON, packages(huggingface_hub="1.2.0"), "skip", id="newer releases ignore the variable"
        ),
        pytest.param({**ON, "HF_HUB_OFFLINE": "1"}, OLD, "skip", id="offline"),
        pytest.param(ON, packages(torch="2.6.0"), "skip", id="no client"),
    ],
)
def test_rows(variables: dict[str, str], installed: Packages, expected: str) -> None:
    judged = judge(
        hf_transfer_missing.hf_transfer_is_installed,
        packages=installed,
        environment=Environment(variables=variables),
    )
    assert judged.status == expected
