"""Rows of `cxx-abi-undefined-symbol`: wheels that name the torch that they were built for."""

from __future__ import annotations

import pytest

from dsdoctor.api import ImportOutcome, ModuleImports, Package, Packages, TorchBuild
from dsdoctor.testing import assert_warn, judge
from dsdoctor_checks.ops import cxx_abi_undefined_symbol

CHECK = cxx_abi_undefined_symbol.wheels_are_for_this_torch
TORCH = TorchBuild(version="2.10.0+cu128", cuda="12.8")


def packages(**versions: str) -> Packages:
    return Packages(
        packages={
            name.replace("_", "-"): Package(name=name, version=version)
            for name, version in versions.items()
        }
    )


@pytest.mark.parametrize(
    ("version", "torch", "expected"),
    [
        pytest.param("2.1.2+pt210cu128", TORCH, "ok", id="PyG's, of this release"),
        pytest.param("2.1.2+pt29cu128", TORCH, "warn", id="PyG's, of the release before"),
        pytest.param("2.1.2+pt21cu118", TORCH, "warn", id="PyG's, 2.1 is not 2.10"),
        pytest.param(
            "2.1.1+pt20cpu", TorchBuild(version="2.0.1"), "ok", id="PyG's, another patch release"
        ),
        pytest.param("0.21.1+torch2100cu128", TORCH, "ok", id="NATTEN's, of this release"),
        pytest.param("0.17.1+torch230cu121", TORCH, "warn", id="NATTEN's, of another release"),
        pytest.param("2.8.3+cu12torch2.10cxx11abitrue", TORCH, "ok", id="flash-attn's"),
        pytest.param("2.8.3+cu12torch2.1cxx11abitrue", TORCH, "warn", id="flash-attn's, another"),
        pytest.param("2.1.2", TORCH, "skip", id="a wheel that names no torch"),
        pytest.param("0.25.0+cu128", TORCH, "skip", id="a wheel that names CUDA"),
        pytest.param("2.1.2+pt29cu128", TorchBuild(), "skip", id="no torch"),
    ],
)
def test_the_torch_in_the_version_of_a_wheel(
    version: str, torch: TorchBuild, expected: str
) -> None:
    found = judge(CHECK, packages=packages(torch_scatter=version), torch_build=torch)
    assert found.status == expected


@pytest.mark.parametrize("works", [True, False])
def test_what_was_imported_is_judged_by_its_import(*, works: bool) -> None:
    tried = ModuleImports(outcomes={"torch_scatter": ImportOutcome(ok=works)})
    found = judge(
        CHECK,
        packages=packages(torch_scatter="2.1.2+pt29cu128"),
        torch_build=TORCH,
        module_imports=tried,
    )
    assert found.status == "ok"


def test_the_hint_names_the_page_of_the_wheels_for_this_torch() -> None:
    found = judge(CHECK, packages=packages(torch_sparse="0.6.18+pt24cu121"), torch_build=TORCH)
    page = "-f https://data.pyg.org/whl/torch-2.10.0+cu128.html torch-sparse"
    assert page in (assert_warn(found, "built for torch 2.4").hint or "")
    found = judge(CHECK, packages=packages(natten="0.17.1+torch230cu121"), torch_build=TORCH)
    assert "pyg.org" not in (assert_warn(found).hint or "")
