"""Rows of `jit-build-compiler-missing`."""

from __future__ import annotations

import pytest

from dsdoctor.api import Compiler, Compilers, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.ops import jit_build_compiler_missing

GCC = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="12.2.0")

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
        pytest.param(Compilers(cxx=GCC, cc=GCC), OFFLOAD, "ok", id="gcc builds C++ and C"),
        pytest.param(
            Compilers(cxx=Compiler(command="c++"), cc=GCC),
            PLAIN,
            "ok",
            id="no C++ compiler for a config that builds nothing",
        ),
        pytest.param(
            Compilers(cxx=Compiler(command="c++"), cc=GCC),
            NO_CONFIG,
            "warn",
            id="no C++ compiler and no config",
        ),
        pytest.param(
            Compilers(cxx=Compiler(command="c++"), cc=GCC),
            OFFLOAD,
            "fail",
            id="no C++ compiler for a config with CPU offload",
        ),
        pytest.param(
            Compilers(
                cxx=Compiler(command="c++", path="/usr/bin/c++", error="exit 1: cc1plus missing"),
                cc=GCC,
            ),
            OFFLOAD,
            "fail",
            id="a C++ compiler that does not start",
        ),
        pytest.param(
            Compilers(cxx=GCC, cc=Compiler(command="c++")),
            OFFLOAD,
            "warn",
            id="no C compiler, but C++ is what the op needs",
        ),
    ],
)
def test_rows(fact: Compilers, run: RunNeeds, expected: str) -> None:
    assert (
        judge(jit_build_compiler_missing.compiler_is_found, compilers=fact, run_needs=run).status
        == expected
    )
