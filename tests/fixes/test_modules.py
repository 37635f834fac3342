"""Toolkits and compilers of environment modules, and the compilers of software collections.

The listings and what a module sets are worded as Lmod 8.6.19 and Environment Modules 5.2.0 print
them (2026-11-29).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from dsdoctor.fixes.probes import other_toolkits
from dsdoctor.model.facts.python import Patient
from dsdoctor.model.facts.repair import InstalledGcc, OtherToolkits
from dsdoctor.model.fix_plan import FixRequest
from dsdoctor.probes.cuda_toolkits import NEEDED_HEADERS
from dsdoctor.testing import FakeHost

LMOD = "/usr/share/lmod/lmod/libexec/lmod"
TCL = "/usr/lib/x86_64-linux-gnu/modulecmd.tcl"
PATIENT = Patient(
    executable="/e/bin/python", chosen_by="VIRTUAL_ENV", version="3.11.7", kind="venv", prefix="/e"
)
GCC = "g++ (GCC) {}\nCopyright (C) 2022 Free Software Foundation, Inc.\n"
CUDA_FILES = {
    **{f"/sw/cuda/include/{name}": "" for name in NEEDED_HEADERS},
    "/sw/cuda/bin/nvcc": "",
    "/sw/cuda/lib64/libcudart.so": "",
}
NVCC = {"/sw/cuda/bin/nvcc --version": "Cuda compilation tools, release 12.4, V12.4.131\n"}


def lmod(name: str, **settings: str) -> dict[str, str]:
    """What Lmod prints for a module that is the only one."""
    rows = [f'os.environ["{key}"] = "{value}";' for key, value in settings.items()]
    folder = f"{name.rpartition('/')[0]}/\n" if "/" in name else ""
    return {
        f"{LMOD} bash -t avail": f"/sw/modules:\n{folder}{name}\n",
        f"{LMOD} python load {name}": "\n".join(["import os", *rows, "_mlstatus = True", ""]),
    }


def tcl(name: str, **settings: str) -> dict[str, str]:
    """The same of Environment Modules."""
    rows = [f"os.environ['{key}'] = '{value}'" for key, value in settings.items()]
    return {
        f"{TCL} bash -t avail": f"/sw/modules:\n{name}(default)\n\n/usr/share:\nnull\n",
        f"{TCL} python load {name}": "\n".join(["import os", *rows, "_mlstatus = True", ""]),
    }


def found(
    commands: dict[str, str], files: dict[str, str], variable: str = "LMOD_CMD"
) -> OtherToolkits:
    host = FakeHost(
        files=files,
        commands=commands,
        env={
            "HOME": "/home/u",
            "PATH": "/usr/bin:/bin",
            variable: LMOD if variable[0] == "L" else TCL,
        },
    )
    fact = other_toolkits.function(host, PATIENT, FixRequest())
    assert isinstance(fact, OtherToolkits)
    return fact


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        pytest.param("CUDA/12.4.0", {"EBROOTCUDA": "/sw/cuda"}, id="EasyBuild"),
        pytest.param("devel/cuda/12.4", {"CUDA_HOME": "/sw/cuda"}, id="sorted into categories"),
        pytest.param("cuda12.4/toolkit/12.4.1", {"CUDA_ROOT": "/sw/cuda/"}, id="the release twice"),
        pytest.param("cudatoolkit/12.4", {"PATH": "/sw/cuda/bin:/usr/bin:/bin"}, id="PATH alone"),
    ],
)
@pytest.mark.parametrize(("system", "variable"), [(lmod, "LMOD_CMD"), (tcl, "MODULES_CMD")])
def test_a_toolkit_of_a_module(
    name: str, settings: dict[str, str], system: Callable[..., dict[str, str]], variable: str
) -> None:
    fact = found({**system(name, **settings), **NVCC}, CUDA_FILES, variable)
    assert [(kit.root, kit.source, kit.version) for kit in fact.found] == [
        ("/sw/cuda", name, "12.4")
    ]


@pytest.mark.parametrize("name", ["cudnn/9.1-cuda-12", "pycuda/2024.1", "gcc/12.2.0"])
def test_other_modules_are_not_loaded_for_a_toolkit(name: str) -> None:
    assert found({**lmod(name, CUDA_HOME="/sw/cuda"), **NVCC}, CUDA_FILES).found == ()


@pytest.mark.parametrize("name", ["gcc/12.2.0", "GCC/12.2.0", "gnu12/12.2.0", "compilers/gcc/12.2"])
def test_a_compiler_of_a_module_and_its_library(name: str) -> None:
    files = {"/sw/gcc/bin/gcc": "", "/sw/gcc/bin/g++": "", "/sw/gcc/lib64/libstdc++.so.6": ""}
    commands = {
        **lmod(name, PATH="/sw/gcc/bin:/usr/bin:/bin"),
        "/sw/gcc/bin/g++ --version": GCC.format("12.2.0"),
        "/sw/gcc/bin/g++ -dumpfullversion -dumpversion": "12.2.0\n",
    }
    assert found(commands, files).gccs_elsewhere == (
        InstalledGcc(
            major=12, cc="/sw/gcc/bin/gcc", cxx="/sw/gcc/bin/g++", source=name,
            libraries="/sw/gcc/lib64",
        ),
    )  # fmt: skip


def test_a_compiler_of_a_software_collection() -> None:
    folder = "/opt/rh/gcc-toolset-12/root/usr/bin"
    commands = {
        f"{folder}/g++ --version": GCC.format("12.2.1 20221121 (Red Hat 12.2.1-7)"),
        f"{folder}/g++ -dumpfullversion -dumpversion": "12.2.1\n",
    }
    files = {f"{folder}/gcc": "", f"{folder}/g++": "", "/opt/rh/other/root/usr/bin/g++": ""}
    assert found(commands, files).gccs_elsewhere == (
        InstalledGcc(
            major=12, cc=f"{folder}/gcc", cxx=f"{folder}/g++", source="gcc-toolset-12"
        ),
    )  # fmt: skip


def test_a_machine_without_modules() -> None:
    fact = found({}, {}, "MODULES")
    assert (fact.found, fact.gccs_elsewhere) == ((), ())
