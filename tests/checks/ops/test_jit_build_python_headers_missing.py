"""Rows of `jit-build-python-headers-missing`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Patient, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.ops import jit_build_python_headers_missing


def patient(*, headers: bool) -> Patient:
    return Patient(
        executable="/usr/bin/python3",
        chosen_by="python3 on PATH",
        version="3.11.2",
        include_dir="/usr/include/python3.11",
        has_headers=headers,
    )


NO_CONFIG = RunNeeds()
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "Adam"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
PLAIN = RunNeeds(config={"zero_optimization": {"stage": 2}})


@pytest.mark.parametrize(
    ("fact", "run", "expected"),
    [
        pytest.param(True, OFFLOAD, "ok", id="Python.h is installed"),
        pytest.param(False, PLAIN, "ok", id="no Python.h for a config that builds nothing"),
        pytest.param(False, NO_CONFIG, "warn", id="no Python.h and no config"),
        pytest.param(False, OFFLOAD, "fail", id="no Python.h for a config with CPU offload"),
    ],
)
def test_rows(fact: bool, run: RunNeeds, expected: str) -> None:
    assert (
        judge(
            jit_build_python_headers_missing.headers_are_there,
            patient=patient(headers=fact),
            run_needs=run,
        ).status
        == expected
    )
