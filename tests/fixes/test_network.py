"""The real thing: the toolkit of CUDA 13.0 from the package index, beside a venv."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixes.fakes import tools
from tests.fixes.test_managers import cuda_checks
from tests.support.command import dsdoctor
from tests.support.patient import freeze, stub_torch, tree, venv

pytestmark = [pytest.mark.network, pytest.mark.system]
CODE = """
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cusparse.h>
#include <thrust/version.h>
__global__ void k(float *x) { x[threadIdx.x] += THRUST_VERSION; }
extern "C" int go(float *x) { k<<<1, 1>>>(x); return cudaGetLastError(); }
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What pip has downloaded, so that it is downloaded once."""
    return tmp_path_factory.mktemp("pip")


class Patient:
    """What `cuda_checks` asks of a machine."""

    def __init__(self, root: Path, cache: Path) -> None:
        self.patient = venv(root / "env")
        stub_torch(self.patient, version="2.11.0", cuda="13.0", release="13.0.2")
        (root / "home").mkdir()
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "DSDOCTOR_PYTHON": str(self.patient / "bin" / "python"),
            "PIP_CACHE_DIR": str(cache),
            "DS_BUILD_FUSED_ADAM": "1",
            "TORCH_CUDA_ARCH_LIST": "8.0;9.0a+PTX",
        }


def torch_still_imports(machine: Patient) -> bool:
    argv = [str(machine.patient / "bin/python"), "-c", "import torch; print(torch.__version__)"]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=500, check=True)
    return done.stdout.strip() == "2.11.0"


def test_the_toolkit_comes_from_the_index_compiles_and_links_and_goes_again(
    tmp_path: Path, cache: Path
) -> None:
    machine = Patient(tmp_path, cache)
    frozen, before = freeze(machine.patient), tree(machine.patient)
    assert "fail" in cuda_checks(machine, activate=False).values()  # type: ignore[arg-type]
    done = dsdoctor("fix", "--install-cuda-toolkit", "--yes", env=machine.env, timeout=500)
    assert done.status == 0, done.err
    assert "applied and proven" in done.err
    assert freeze(machine.patient) == frozen
    after = cuda_checks(machine, activate=True)  # type: ignore[arg-type]
    assert after["cuda-toolkit-missing"] == after["cuda-toolkit-mismatch"] == "ok"
    assert after["cuda-toolkit-incomplete"] == "ok"
    home = machine.patient / "opt/dsdoctor/cuda-13.0/nvidia/cu13"
    source = tmp_path / "a.cu"
    source.write_text(CODE)
    nvcc = [str(home / "bin/nvcc"), "-arch=sm_90", "-Xcompiler", "-fPIC"]
    for argv in (
        [*nvcc, "-c", str(source), "-o", str(tmp_path / "a.o")],
        ["c++", "-shared", str(tmp_path / "a.o"), "-o", str(tmp_path / "a.so"), f"-L{home}/lib64",
         "-lcudart", "-lcurand", "-lcublas", "-lcusparse"],
    ):  # fmt: skip
        subprocess.run(argv, check=True, timeout=500)
    assert b".nv_fatbin" in (tmp_path / "a.so").read_bytes()
    again = dsdoctor("fix", "--install-cuda-toolkit", "--yes", env=machine.env)
    assert again.status == 0
    assert "nothing to do" in again.err
    undone = dsdoctor("fix", "--undo", "--yes", env=machine.env, timeout=500)
    assert undone.status == 0
    assert tree(machine.patient) == before
    assert freeze(machine.patient) == frozen


def test_in_place_it_compiles_and_undo_brings_the_frozen_list_back(
    tmp_path: Path, cache: Path
) -> None:
    machine = Patient(tmp_path, cache)
    frozen, before = freeze(machine.patient), tree(machine.patient)
    argv = ("fix", "--install-cuda-toolkit", "--in-place", "--yes")
    done = dsdoctor(*argv, env=machine.env, timeout=500)
    assert done.status == 0, done.err
    assert "applied and proven" in done.err
    assert "nvidia-cuda-nvcc==13.0." in freeze(machine.patient)
    assert dsdoctor("fix", "--undo", "--yes", env=machine.env, timeout=300).status == 0
    assert freeze(machine.patient) == frozen
    # pip leaves empty folders behind
    after = {name: row for name, row in tree(machine.patient).items() if row[0] != "dir"}
    assert after == {name: row for name, row in before.items() if row[0] != "dir"}
    assert torch_still_imports(machine)


def test_pip_puts_its_list_back(tmp_path: Path, cache: Path) -> None:
    """A step of pip in the environment itself: ninja, for a venv of which nothing is on PATH."""
    machine = Patient(tmp_path, cache)
    machine.env["PATH"] = str(tools(tmp_path / "tools"))
    frozen = freeze(machine.patient)
    env = {**machine.env, "DS_BUILD_FUSED_ADAM": ""}
    done = dsdoctor("fix", "install-ninja", "--yes", env=env, timeout=300)
    assert done.status == 0, done.err
    assert "ninja==" in freeze(machine.patient)
    assert dsdoctor("fix", "--undo", "--yes", env=env, timeout=300).status == 0
    assert freeze(machine.patient) == frozen
    assert torch_still_imports(machine)
