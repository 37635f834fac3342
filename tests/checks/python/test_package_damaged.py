"""Rows of `package-damaged`, and of the checks whose finding follows from it."""

from __future__ import annotations

import pytest

from dsdoctor import judge as judging
from dsdoctor import packs
from dsdoctor.api import (
    DamagedPackage,
    DamagedPackages,
    ImportOutcome,
    ModuleImports,
    ScriptImports,
    Status,
    TorchBuild,
    TorchLive,
)
from dsdoctor.model.snapshot import of
from dsdoctor.testing import judge
from dsdoctor_checks.python import package_damaged
from tests.checks.python.support import deepspeed, deepspeed_live, packages, patient, torch_live

CHECK = package_damaged.files_are_those_installed
EMPTY = DamagedPackage(
    name="accelerate", version="1.15.0", empty=("accelerate/utils/dataclasses.py",), files=1
)
TORCH = DamagedPackage(name="torch", version="2.13.0", cut=("torch/lib/libtorch_cpu.so",), files=1)


@pytest.mark.parametrize(
    ("damaged", "words", "hint"),
    [
        pytest.param(
            EMPTY,
            "but `accelerate/utils/dataclasses.py` is empty",
            "install --force-reinstall --no-deps accelerate==1.15.0",
            id="a file of 0 bytes",
        ),
        pytest.param(
            DamagedPackage(
                name="peft", version="x; rm", missing=("peft/a.py", "peft/b.py", "peft/c.py")
            ),
            "`peft/a.py` and `peft/b.py` and 1 more do not exist",
            "--no-deps peft`",
            id="files that are gone, and a version that is none",
        ),
        pytest.param(
            DamagedPackage(name="tokenizers", version="0.23.3", cut=("tokenizers/tokenizers.so",)),
            "is cut off or overwritten",
            "tokenizers==0.23.3",
            id="a library that is cut off",
        ),
    ],
)
def test_damaged(damaged: DamagedPackage, words: str, hint: str) -> None:
    (finding,) = judge(
        CHECK, damaged_packages=DamagedPackages(packages=(damaged,)), patient=patient()
    ).bad
    assert finding.status is Status.FAIL
    assert words in finding.message
    assert hint in finding.hint


@pytest.mark.parametrize(
    "damaged", [pytest.param((), id="none"), pytest.param((TORCH,), id="torch")]
)
def test_no_finding(damaged: tuple[DamagedPackage, ...]) -> None:
    assert judge(CHECK, damaged_packages=DamagedPackages(packages=damaged)).status == "ok"


def test_only_the_damage_is_reported_not_a_conflict_of_releases() -> None:
    words = "cannot import name 'X' from 'accelerate.utils.dataclasses' (/env/dataclasses.py)"
    outcome = ImportOutcome(ok=False, error_type="ImportError", message=words)
    facts = [
        packages(torch="2.13.0", accelerate="1.15.0", transformers="5.24.0"),
        patient(),
        torch_live(),
        ScriptImports(
            script="train.py", names={"transformers:Trainer": 3}, found=("transformers",)
        ),
        ModuleImports(names={"transformers:Trainer": outcome}),
    ]
    registry = packs.load(builtin_only=True)

    def failed(*more: DamagedPackages) -> set[str]:
        report = judging.judge(of([*facts, *more]), list(registry), registry)
        return {one.condition for one in report.findings if one.status is Status.FAIL}

    assert failed(DamagedPackages(packages=(EMPTY,))) == {"package-damaged"}
    assert failed(DamagedPackages()) == {"dependency-version-conflict"}


def test_a_damaged_package_that_deepspeed_imports() -> None:
    facts = [
        packages(torch="2.13.0", deepspeed="0.19.8", hjson="3.1.0"),
        torch_live(),
        deepspeed(),
        deepspeed_live("cannot import name 'loads' from 'hjson'"),
    ]
    registry = packs.load(builtin_only=True)
    broken = DamagedPackages(packages=(DamagedPackage(name="hjson", version="3.1.0", files=1),))
    report = judging.judge(of([*facts, broken]), list(registry), registry)
    failed = {one.condition for one in report.findings if one.status is Status.FAIL}
    assert failed == {"package-damaged"}


def test_a_damaged_torch_is_told_where_its_import_is() -> None:
    outcome = ImportOutcome(ok=False, error_type="signal", message="SIGBUS", signal=7)
    registry = packs.load(builtin_only=True)
    snapshot = of(
        [
            TorchBuild(version="2.13.0", path="/env/torch"),
            TorchLive(imported=outcome),
            DamagedPackages(packages=(TORCH,)),
        ]
    )
    report = judging.judge(snapshot, list(registry), registry)
    (finding,) = [one for one in report.findings if one.status is Status.FAIL]
    assert finding.condition == "torch-import-broken"
    assert "`torch/lib/libtorch_cpu.so` is cut off" in finding.message
