from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import Packages, Patient, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.torch import torch_missing
from tests.checks import machines as m

CHECK = torch_missing.torch_is_installed


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        pytest.param({"torch_build": m.torch()}, ["ok"], id="torch is installed"),
        pytest.param({"torch_build": TorchBuild()}, ["fail"], id="torch is not installed"),
        pytest.param(
            {"torch_build": TorchBuild(error="no version")},
            ["fail"],
            id="torch is installed without a version",
        ),
        pytest.param(
            {
                "torch_build": TorchBuild(),
                "patient": Patient(
                    executable="/v/bin/python",
                    chosen_by="VIRTUAL_ENV",
                    version="3.11.7",
                    prefix="/v",
                    kind="venv",
                ),
            },
            ["fail"],
            id="torch is not installed in the venv",
        ),
    ],
)
def test_verdict(facts: dict[str, Any], expected: list[str]) -> None:
    assert judge(CHECK, **facts).statuses == expected


@pytest.mark.parametrize(
    ("left", "words", "hint"),
    [
        pytest.param(
            "2.13.0+cpu", ": pip was interrupted while", "torch==2.13.0`", id="interrupted"
        ),
        pytest.param("1 --index-url=x", "python`", "install torch`", id="not a version"),
    ],
)
def test_pip_was_killed_while_it_replaced_torch(left: str, words: str, hint: str) -> None:
    (finding,) = judge(
        CHECK,
        torch_build=TorchBuild(),
        packages=Packages(remnants={"torch": left}),
        patient=Patient(executable="/py/bin/python", chosen_by="--python", version="3.11.7"),
    ).findings
    assert words in finding.message
    assert hint in finding.hint


def test_the_hint_names_a_build_that_the_driver_supports() -> None:
    kernel = m.kernel("535.104.05")
    found = judge(CHECK, torch_build=TorchBuild(), nvidia_kernel=kernel, gpus=m.gpus("T4"))
    (finding,) = found.findings
    assert "'torch==2.14.*' --index-url https://download.pytorch.org/whl/cu126" in finding.hint


def test_torch_is_not_installed_into_the_environment_of_dsdoctor() -> None:
    own = Patient(
        executable="/uv/bin/python", chosen_by="running interpreter", version="3.11.7",
        prefix="/uv", kind="venv",
    )  # fmt: skip
    (finding,) = judge(CHECK, torch_build=TorchBuild(), patient=own).findings
    assert finding.hint == (
        "no environment is active, so dsdoctor's own was examined: "
        "activate the environment that the job uses, or pass its interpreter with `--python`"
    )
    assert finding.fixes == (), "the fix refuses this environment"
    mine = msgspec.structs.replace(own, chosen_by="VIRTUAL_ENV")
    (other,) = judge(CHECK, torch_build=TorchBuild(), patient=mine).findings
    assert other.fixes == ("install-torch-build",)


def test_amd_gpus_need_a_build_for_rocm() -> None:
    os = msgspec.structs.replace(m.LINUX, amd_gpus=8)
    facts: dict[str, Any] = {"torch_build": TorchBuild(), "os_info": os}
    (finding,) = judge(CHECK, nvidia_kernel=m.NO_GPU, **facts).findings
    assert "torch's ROCm build" in finding.hint
    assert finding.fixes == (), "dsdoctor chooses none"
    (finding,) = judge(CHECK, nvidia_kernel=m.kernel(), **facts).findings
    assert "ROCm" not in finding.hint, "a machine of both vendors trains on NVIDIA's"


def test_the_python_of_the_distribution_is_closed_to_pip_if_it_was_passed_too() -> None:
    own = Patient(
        executable="/usr/bin/python3", chosen_by="--python", version="3.11.7", kind="system"
    )
    (finding,) = judge(CHECK, torch_build=TorchBuild(), patient=own).findings
    assert finding.hint.endswith("create it with `/usr/bin/python3 -m venv DIR`")


def test_a_damaged_torch_is_installed_again_with_pip_where_no_fix_is_offered() -> None:
    bare = Patient(
        executable="/usr/local/bin/python3", chosen_by="--python", version="3.11.7", kind="system"
    )
    torch = TorchBuild(error="version.py is missing")
    (finding,) = judge(CHECK, torch_build=torch, patient=bare).findings
    assert finding.hint == "run `/usr/local/bin/python3 -m pip install --force-reinstall torch`"


def test_the_packages_of_the_venv_are_those_of_another_python() -> None:
    upgraded = Patient(
        executable="/v/bin/python", chosen_by="VIRTUAL_ENV", version="3.11.7", prefix="/v",
        kind="venv", left_by_python="3.10",
    )  # fmt: skip
    (finding,) = judge(CHECK, torch_build=TorchBuild(), patient=upgraded).findings
    assert "not installed in the venv `/v` for this Python, but for Python 3.10" in finding.message
    assert "create the environment again with Python 3.10" in finding.hint
    assert finding.by_hand is True
