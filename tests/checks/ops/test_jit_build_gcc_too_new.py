"""Rows of `jit-build-gcc-too-new`."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.api import (
    Compiler,
    Compilers,
    CudaToolkits,
    Missing,
    OsInfo,
    RunNeeds,
    Toolkit,
    TorchBuild,
    Why,
)
from dsdoctor.testing import Judged, judge
from dsdoctor_checks.ops import jit_build_gcc_too_new


def toolkits(version: str | None) -> CudaToolkits:
    nvcc = None if version is None else "/cuda/bin/nvcc"
    return CudaToolkits(
        chosen=0, found=(Toolkit(root="/cuda", source="CUDA_HOME", nvcc=nvcc, version=version),)
    )


CUDA = TorchBuild(version="2.9.1", cuda="12.8")


def facts(gcc: str | None, cuda: str | None) -> dict[str, Any]:
    compiler = Compiler(command="cc", path="/usr/bin/cc", kind="gcc" if gcc else None, version=gcc)
    return {"compilers": Compilers(cxx=compiler, cc=compiler), "cuda_toolkits": toolkits(cuda)}


NO_CONFIG = RunNeeds()
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "Adam"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
FUSED = RunNeeds(config={"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}})


@pytest.mark.parametrize(
    ("fact", "run", "expected"),
    [
        pytest.param(("12.2.0", "12.4"), FUSED, "ok", id="nvcc 12.4 takes gcc 12"),
        pytest.param(("14.1.0", "12.4"), FUSED, "fail", id="nvcc 12.4 refuses gcc 14"),
        pytest.param(
            ("14.1.0", "12.4"),
            NO_CONFIG,
            "warn",
            id="nvcc 12.4 refuses gcc 14, and no config is given",
        ),
        pytest.param(
            ("14.1.0", "12.4"), OFFLOAD, "ok", id="CPU offload does not compile with nvcc"
        ),
        pytest.param(("14.1.0", "12.8"), FUSED, "ok", id="nvcc 12.8 takes gcc 14"),
        pytest.param(("15.1.0", "13.0"), FUSED, "ok", id="nvcc 13.0 takes gcc 15"),
        pytest.param(("16.1.0", "13.0"), FUSED, "fail", id="nvcc 13.0 refuses gcc 16"),
        pytest.param(
            ("14.1.0", "99.0"), FUSED, "skip", id="an nvcc that the table does not know yet"
        ),
        pytest.param(("14.1.0", None), FUSED, "skip", id="nvcc is not installed"),
        pytest.param((None, "12.4"), FUSED, "skip", id="the compiler is not gcc"),
    ],
)
def test_rows(fact: tuple[str | None, str | None], run: RunNeeds, expected: str) -> None:
    assert (
        judge(
            jit_build_gcc_too_new.nvcc_accepts_compiler,
            **facts(*fact),
            torch_build=CUDA,
            run_needs=run,
        ).status
        == expected
    )


def test_a_cpu_build_of_torch_calls_no_nvcc() -> None:
    cpu = TorchBuild(version="2.13.0+cpu")
    check = jit_build_gcc_too_new.nvcc_accepts_compiler
    assert judge(check, **facts("99.0", "12.4"), torch_build=cpu, run_needs=FUSED).status == "skip"


@pytest.mark.parametrize(
    ("clang", "newest"),
    [
        pytest.param((12, 4), 17, id="nvcc 12.4 takes clang 17"),
        pytest.param((13, 0), 20, id="nvcc 13.0 takes clang 20"),
        pytest.param((10, 2), None, id="nvcc 10.2 is not in the table"),
    ],
)
def test_clang(clang: tuple[int, int], newest: int | None) -> None:
    assert jit_build_gcc_too_new.newest("clang", clang) == newest


@pytest.mark.parametrize(
    ("why", "expected"),
    [
        pytest.param(Why.NOT_ASKED, "warn", id="a paste that says nothing of torch"),
        pytest.param(Why.ABSENT, "skip", id="torch is not installed"),
        pytest.param(Why.TIMEOUT, "skip", id="torch did not answer"),
    ],
)
def test_nvcc_and_gcc_decide_without_torch_in_a_paste_alone(why: Why, expected: str) -> None:
    check = jit_build_gcc_too_new.nvcc_accepts_compiler
    known = facts("14.0", "12.4") | {"torch_build": Missing(why=why, detail="")}
    assert judge(check, **known, run_needs=RunNeeds()).status == expected


def _builds_with(compiler: Compiler, toolkit: Toolkit, **other: Any) -> Judged:
    """What is said of one compiler and one toolkit, for a run without a config."""
    return judge(
        jit_build_gcc_too_new.nvcc_accepts_compiler,
        compilers=Compilers(cxx=compiler, cc=compiler),
        cuda_toolkits=CudaToolkits(chosen=0, found=(toolkit,)),
        torch_build=CUDA,
        run_needs=NO_CONFIG,
        **other,
    )


PACKAGED = "/usr/lib/nvidia-cuda-toolkit/bin/gcc"


@pytest.mark.parametrize(
    ("command", "own", "expected"),
    [
        pytest.param("cc", PACKAGED, "ok", id="nvcc of the distribution has a gcc of its own"),
        pytest.param("/usr/bin/gcc", PACKAGED, "warn", id="CC is passed to it"),
        pytest.param("cc", None, "warn", id="another nvcc calls the gcc on PATH"),
    ],
)
def test_the_compiler_of_a_packaged_nvcc(command: str, own: str | None, expected: str) -> None:
    compiler = Compiler(command=command, path="/usr/bin/gcc", kind="gcc", version="13.2.0")
    toolkit = Toolkit(
        root="/usr", source="PATH", nvcc="/usr/bin/nvcc", version="12.0", host_compiler=own
    )
    assert _builds_with(compiler, toolkit).status == expected


@pytest.mark.parametrize(
    ("nvcc", "distribution", "expected"),
    [
        pytest.param("nvcc", "ubuntu 24.04", "skip", id="it may be the package of Ubuntu 24.04"),
        pytest.param("nvcc", "ubuntu 22.04", "warn", id="another release packages another nvcc"),
        pytest.param("/usr/local/cuda/bin/nvcc", "ubuntu 24.04", "warn", id="its path is known"),
    ],
)
def test_an_nvcc_without_a_path(nvcc: str, distribution: str, expected: str) -> None:
    compiler = Compiler(command="gcc", path="gcc", kind="gcc", version="13.2.0")
    toolkit = Toolkit(root="/usr", source="PATH", nvcc=nvcc, version="12.0")
    os = OsInfo(
        system="Linux", release="6", machine="x86_64", hostname="n", distribution=distribution
    )
    assert _builds_with(compiler, toolkit, os_info=os).status == expected
