"""Rows of `deepspeed-torch-incompatible`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_torch_incompatible
from tests.checks.python.support import deepspeed, deepspeed_live

CHECK = deepspeed_torch_incompatible.deepspeed_suits_torch


@pytest.mark.parametrize(
    ("version", "torch", "expected"),
    [
        ("0.19.8", "2.13.0+cpu", "ok"),
        ("0.19.8", "2.15.0", "ok"),
        ("0.8.0", "1.13.1", "ok"),
        ("0.8.0", "2.0.1", "fail"),
        ("0.14.0", "2.3.1", "fail"),
        ("0.14.0", "2.2.2", "ok"),
        ("0.14.3", "2.4.0", "fail"),
        ("0.14.4", "2.4.0", "ok"),
        ("0.19.4", "2.12.0", "warn"),
        ("0.19.5", "2.12.0", "ok"),
    ],
)
def test_rows(version: str, torch: str, expected: str) -> None:
    assert (
        judge(
            CHECK, deep_speed_install=deepspeed(version), torch_build=TorchBuild(version=torch)
        ).status
        == expected
    )


def test_an_import_that_worked_outranks_the_table() -> None:
    facts: dict[str, Any] = {
        "deep_speed_install": deepspeed("0.14.0"),
        "torch_build": TorchBuild(version="2.3.1"),
        "deep_speed_live": deepspeed_live(),
    }
    assert judge(CHECK, **facts).status == "ok"
