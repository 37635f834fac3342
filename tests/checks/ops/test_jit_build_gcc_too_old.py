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
        (("9.4.0", "2.9.1"), OFFLOAD, "ok"),
        (("9.4.0", "2.13.0+cpu"), OFFLOAD, "fail"),
        (("9.4.0", "2.13.0+cpu"), NO_CONFIG, "warn"),
        (("9.4.0", "2.13.0+cpu"), PLAIN, "ok"),
        (("12.2.0", "2.15.0"), OFFLOAD, "ok"),
        (("7.5.0", "2.5.1"), OFFLOAD, "fail"),
        (("7.5.0", "2.0.1"), OFFLOAD, "ok"),
        (("8.5.0", "2.3.0"), OFFLOAD, "fail"),  # of RHEL 8
        (("8.5.0", "2.2.2"), OFFLOAD, "fail"),
        (("8.5.0", "2.2.1"), OFFLOAD, "ok"),
        (("7.5.0", "2.1.2"), OFFLOAD, "ok"),
        (("5.4.0", "2.1.2"), OFFLOAD, "skip"),
        (("4.8.5", "2.1.2"), OFFLOAD, "fail"),
        (("4.8.5", "1.13.1"), OFFLOAD, "skip"),
    ],
)
def test_rows(fact: tuple[str, str], run: RunNeeds, expected: str) -> None:
    assert (
        judge(jit_build_gcc_too_old.torch_accepts_compiler, **facts(*fact), run_needs=run).status
        == expected
    )
