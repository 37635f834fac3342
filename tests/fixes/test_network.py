"""The real thing: the toolkit of CUDA 13.0 from the package index, beside a venv."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixes.fakes import tools
from tests.fixes.test_managers import cuda_checks
from tests.support.command import dsdoctor
from tests.support.patient import freeze, stub_torch, tree, venv

pytestmark = [pytest.mark.network, pytest.mark.system, pytest.mark.timeout(600)]
CODE = """
#include <cuda_runtime.h>
#include <curand_kernel.h>
#include <cusparse.h>
#include <thrust/version.h>
__global__ void k(float *x) { x[threadIdx.x] += THRUST_VERSION; }
extern "C" int go(float *x) { k<<<1, 1>>>(x); return cudaGetLastError(); }
"""


class Patient:
    """What `cuda_checks` asks of a machine."""

    def __init__(self, root: Path) -> None:
        self.patient = venv(root / "env")
        stub_torch(self.patient, version="2.11.0", cuda="13.0", release="13.0.2")
        (root / "home").mkdir()
        self.env = {
            "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
            "HOME": str(root / "home"),
            "DSDOCTOR_PYTHON": str(self.patient / "bin" / "python"),
            "DS_BUILD_FUSED_ADAM": "1",
            "TORCH_CUDA_ARCH_LIST": "8.0;9.0a+PTX",
        }


def test_the_toolkit_comes_from_the_index_compiles_and_links_and_goes_again(tmp_path: Path) -> None:
    machine = Patient(tmp_path)
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
        subprocess.run(argv, check=True, timeout=120)
    assert b".nv_fatbin" in (tmp_path / "a.so").read_bytes()
    again = dsdoctor("fix", "--install-cuda-toolkit", "--yes", env=machine.env)
    assert again.status == 0
    assert "nothing to do" in again.err
    undone = dsdoctor("fix", "--undo", env=machine.env, timeout=120)
    assert undone.status == 0
    assert tree(machine.patient) == before
    assert freeze(machine.patient) == frozen


def test_pip_puts_its_list_back(tmp_path: Path) -> None:
    """A step of pip in the environment itself: ninja, for a venv of which nothing is on PATH."""
    machine = Patient(tmp_path)
    machine.env["PATH"] = str(tools(tmp_path / "tools"))
    frozen = freeze(machine.patient)
    env = {**machine.env, "DS_BUILD_FUSED_ADAM": ""}
    done = dsdoctor("fix", "install-ninja", "--yes", env=env, timeout=300)
    assert done.status == 0, done.err
    assert "ninja==" in freeze(machine.patient)
    assert dsdoctor("fix", "--undo", env=env, timeout=300).status == 0
    assert freeze(machine.patient) == frozen
    argv = [
        str(machine.patient / "bin/python"),
        "-c",
        "import torch, json; print(torch.__version__)",
    ]
    done_import = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
    assert done_import.stdout.strip() == "2.11.0"
    assert json.loads(dsdoctor("fix", "--format", "json", "install-libaio", env=env).out)["schema"]
