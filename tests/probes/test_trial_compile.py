"""The trial compile of `--deep`, with compilers that are scripts."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from dsdoctor.api import Missing, RunNeeds, TorchBuild, Why
from dsdoctor.host import LocalHost
from dsdoctor.probes.cuda_toolkits import cuda_toolkits

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="shell scripts")

VERSION = "echo 'Cuda compilation tools, release 12.8, V12.8.93'; exit 0"


def toolkit(tmp_path: Path, compile_line: str) -> LocalHost:
    nvcc = tmp_path / "cuda" / "bin" / "nvcc"
    nvcc.parent.mkdir(parents=True)
    nvcc.write_text(f'#!/bin/sh\ncase "$1" in -V|--version) {VERSION};; esac\n{compile_line}\n')
    nvcc.chmod(0o755)
    env = {"PATH": "/usr/bin:/bin", "CUDA_HOME": str(tmp_path / "cuda"), "HOME": str(tmp_path)}
    return LocalHost(env)


def tried(host: LocalHost, run: RunNeeds, torch: TorchBuild) -> tuple[bool | None, str | None]:
    lacking = Missing(why=Why.ABSENT, detail="no interpreter")
    found = cuda_toolkits.function(host, lacking, run, torch)
    assert found.toolkit is not None
    assert found.toolkit.version == "12.8"
    return found.toolkit.trial_ok, found.toolkit.trial_error


CUDA_TORCH = TorchBuild(version="2.13.0+cu130", cuda="13.0", path="/opt/none/torch")


def test_nothing_is_compiled_without_deep(tmp_path: Path) -> None:
    host = toolkit(tmp_path, "exit 1")
    assert tried(host, RunNeeds(), CUDA_TORCH) == (None, None)


def test_a_compile_that_works(tmp_path: Path) -> None:
    host = toolkit(tmp_path, 'grep -q ATen "$2" && exit 0; exit 3')
    assert tried(host, RunNeeds(deep=True), CUDA_TORCH) == (True, None)


def test_a_compile_that_fails_keeps_the_compilers_words(tmp_path: Path) -> None:
    host = toolkit(tmp_path, "echo 'x.h:1: fatal error: cusparse.h: No such file' >&2; exit 1")
    worked, words = tried(host, RunNeeds(deep=True), CUDA_TORCH)
    assert worked is False
    assert "cusparse.h" in str(words)


def test_a_cpu_build_is_not_tried(tmp_path: Path) -> None:
    host = toolkit(tmp_path, "exit 1")
    torch = TorchBuild(version="2.13.0+cpu", path="/opt/none/torch")
    assert tried(host, RunNeeds(deep=True), torch) == (None, None)
