"""In place, only after the compile failed in a folder of its own, and only when asked anew."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.fixes.fakes import Machine
from tests.fixes.terminal import on_terminal
from tests.support.command import dsdoctor
from tests.support.patient import freeze, tree

pytestmark = pytest.mark.system
FIX = ("fix", "--install-cuda-toolkit")


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """CUDA 13.0 by pip; nvcc fails wherever it is not among the packages of the environment."""
    made = Machine(tmp_path, cuda="13.0", torch="2.11.0")
    made.pip()
    made.env["FAKE_NVCC_FAILS"] = "/opt/dsdoctor/"
    return made


def installs(machine: Machine) -> list[list[str]]:
    return [call for call in machine.calls("install") if "--dry-run" not in call]


def test_after_a_failed_compile_it_asks_anew_and_undo_brings_the_list_back(
    machine: Machine,
) -> None:
    before, frozen = tree(machine.patient), freeze(machine.patient)
    shown, status = on_terminal([*FIX], machine.env, "y\n", "y\n")
    assert status == 0, shown
    order = ["apply this plan?", "error: the compiler is a fake", "everything was restored",
             "alternative, with `--in-place`", "apply this plan?", "applied and proven"]  # fmt: skip
    at = 0
    for words in order:
        at = shown.index(words, at) + 1
    first, second = installs(machine)
    assert "--target" in first
    assert second[2:] == ["--no-input", "--no-deps", "nvidia-cuda-nvcc==13.0.88"]
    assert not (machine.patient / "opt/dsdoctor/cuda-13.0").exists()
    assert freeze(machine.patient) == f"{frozen.strip()}\nnvidia-cuda-nvcc==13.0.88\n"
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env).status == 0
    assert freeze(machine.patient) == frozen
    assert tree(machine.patient) == before
    assert "nothing to undo" in dsdoctor("fix", "--undo", "--yes", env=machine.env).err


def test_no_to_the_second_question_changes_nothing(machine: Machine) -> None:
    before = tree(machine.patient)
    shown, status = on_terminal([*FIX], machine.env, "y\n", "n\n")
    assert status == 1
    assert shown.count("apply this plan?") == 2
    assert tree(machine.patient) == before
    assert len(installs(machine)) == 1


def test_yes_is_not_a_yes_to_that(machine: Machine) -> None:
    before = tree(machine.patient)
    done = dsdoctor(*FIX, "--yes", env=machine.env)
    assert done.status == 1
    assert "`dsdoctor fix install-cuda-toolkit --in-place --yes` applies it" in done.err
    assert tree(machine.patient) == before
    told = dsdoctor(*FIX, "--yes", "--format", "json", env=machine.env)
    assert told.report["outcomes"] == {"install-cuda-toolkit": "not-proven"}
    assert [plan["alternative"] for plan in told.report["plans"]] == [False, True]
    assert "the compiler is a fake" in told.report["error"]
    assert dsdoctor(*FIX, "--in-place", "--yes", env=machine.env).status == 0
    assert len(installs(machine)) == 3


def test_a_plan_in_place_says_how_it_is_undone_before_it_asks(machine: Machine) -> None:
    shown, status = on_terminal([*FIX, "--in-place"], machine.env, "n\n")
    assert status == 4
    said = " ".join(shown.split())
    undo = "undo: pip restores the previous packages, and the links are removed"
    assert said.index(undo) < said.index("apply this plan?")
    assert json.loads(machine.log.read_text().splitlines()[-1])[-1].startswith("cuda-toolkit[")
