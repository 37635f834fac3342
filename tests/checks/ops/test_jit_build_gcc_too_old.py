"""Rows of `jit-build-gcc-too-old`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import Compiler, Compilers, RunNeeds, TorchBuild
from dsdoctor.testing import judge
from dsdoctor_checks.ops import jit_build_gcc_too_old


def facts(gcc: str, torch: str) -> dict[str, Any]:
    compiler = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version=gcc)
    return {
        "compilers": Compilers(cxx=compiler, cc=compiler),
        "torch_build": TorchBuild(version=torch),
    }


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
        pytest.param(("9.4.0", "2.9.1"), OFFLOAD, "ok", id="gcc 9.4 builds for torch 2.9"),
        pytest.param(
            ("9.4.0", "2.13.0+cpu"), OFFLOAD, "fail", id="gcc 9.4 is too old for torch 2.13"
        ),
        pytest.param(
            ("9.4.0", "2.13.0+cpu"),
            NO_CONFIG,
            "warn",
            id="gcc 9.4 is too old for torch 2.13, and no config is given",
        ),
        pytest.param(
            ("9.4.0", "2.13.0+cpu"),
            PLAIN,
            "ok",
            id="gcc 9.4 is too old for torch 2.13, but the config builds nothing",
        ),
        pytest.param(
            ("12.2.0", "2.15.0"), OFFLOAD, "ok", id="gcc 12 builds for a torch newer than the table"
        ),
        pytest.param(("7.5.0", "2.5.1"), OFFLOAD, "fail", id="gcc 7 is too old for torch 2.5"),
        pytest.param(("7.5.0", "2.0.1"), OFFLOAD, "ok", id="gcc 7 builds for torch 2.0"),
        pytest.param(
            ("8.5.0", "2.3.0"), OFFLOAD, "fail", id="gcc 8 is too old for torch 2.3"
        ),  # of RHEL 8
        pytest.param(("8.5.0", "2.2.2"), OFFLOAD, "fail", id="gcc 8 is too old for torch 2.2.2"),
        pytest.param(("8.5.0", "2.2.1"), OFFLOAD, "ok", id="gcc 8 builds for torch 2.2.1"),
        pytest.param(("7.5.0", "2.1.2"), OFFLOAD, "ok", id="gcc 7 builds for torch 2.1"),
        pytest.param(
            ("5.4.0", "2.1.2"),
            OFFLOAD,
            "skip",
            id="torch 2.1 takes gcc 5, which lacks parts of C++17",
        ),
        pytest.param(("4.8.5", "2.1.2"), OFFLOAD, "fail", id="gcc 4.8 is too old for torch 2.1"),
        pytest.param(
            ("4.8.5", "1.13.1"), OFFLOAD, "fail", id="gcc 4.8 lacks the C++14 of torch 1.13"
        ),
        pytest.param(("4.8.5", "1.4.0"), OFFLOAD, "skip", id="torch 1.4 is older than the table"),
    ],
)
def test_rows(fact: tuple[str, str], run: RunNeeds, expected: str) -> None:
    assert (
        judge(jit_build_gcc_too_old.torch_accepts_compiler, **facts(*fact), run_needs=run).status
        == expected
    )
