"""Rows of `deepspeed-missing`."""

from __future__ import annotations

import re

import pytest

from dsdoctor.api import DeepSpeedInstall, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.python import deepspeed_missing
from tests.checks.python.support import deepspeed, patient


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(deepspeed(), "ok", id="deepspeed is installed"),
        pytest.param(deepspeed(None), "fail", id="deepspeed is not installed"),
        pytest.param(
            deepspeed("0.19.8", error="deepspeed/version.py cannot be read"),
            "fail",
            id="deepspeed is installed, but its version cannot be read",
        ),
    ],
)
def test_rows(fact: DeepSpeedInstall, expected: str) -> None:
    assert (
        judge(
            deepspeed_missing.deepspeed_is_installed, deep_speed_install=fact, patient=patient()
        ).status
        == expected
    )


NAME_ONE = "activate the environment that the job uses, or pass its interpreter with `--python`"


@pytest.mark.parametrize(
    ("chosen_by", "torch", "hint"),
    [
        pytest.param("VIRTUAL_ENV", None, "run `/env/bin/python -m pip", id="an active one"),
        pytest.param("--python", None, "run `/env/bin/python -m pip", id="a named one"),
        pytest.param("running interpreter", "2.13.0", "run `/env", id="ours, in which one trains"),
        pytest.param("running interpreter", None, f"no environment .*: {NAME_ONE}$", id="ours"),
        pytest.param("python3 on PATH", None, f"{NAME_ONE}; to install", id="one on PATH"),
    ],
)
def test_the_hint_first_names_an_environment_where_nobody_did(
    chosen_by: str, torch: str | None, hint: str
) -> None:
    judged = judge(
        deepspeed_missing.deepspeed_is_installed,
        deep_speed_install=deepspeed(None),
        patient=patient(chosen_by=chosen_by),
        torch_build=TorchBuild(version=torch),
    )
    (finding,) = judged.findings
    assert re.match(hint, finding.hint)
    assert (finding.fixes == ()) is finding.hint.startswith("no environment"), "not into ours"


def test_nothing_is_to_be_installed_into_the_python_of_the_distribution() -> None:
    judged = judge(
        deepspeed_missing.deepspeed_is_installed,
        deep_speed_install=deepspeed(None),
        patient=patient(chosen_by="python3 on PATH", executable="/usr/bin/python3"),
        torch_build=TorchBuild(),
    )
    expected = f"{NAME_ONE}; without one, create it with `/usr/bin/python3 -m venv DIR`"
    assert judged.findings[0].hint == expected


def test_no_fix_is_named_that_would_refuse() -> None:
    """`install-deepspeed` does not install into the system's Python."""
    system = patient(executable="/usr/bin/python3", chosen_by="python3 on PATH", kind="system")
    found = judge(
        deepspeed_missing.deepspeed_is_installed, deep_speed_install=deepspeed(None), patient=system
    )
    assert found.worst.by_hand is True


@pytest.mark.parametrize(
    ("torch", "command"),
    [
        ("2.13.0", "install --no-build-isolation deepspeed"),
        (None, "install deepspeed"),
    ],
)
def test_its_build_must_see_the_torch_that_is_installed(torch: str | None, command: str) -> None:
    judged = judge(
        deepspeed_missing.deepspeed_is_installed,
        deep_speed_install=deepspeed(None),
        patient=patient(),
        torch_build=TorchBuild(version=torch),
    )
    assert f"`/env/bin/python -m pip {command}`" in judged.findings[0].hint
