"""Rows of `libstdcxx-too-old`, and where the probe finds the library."""

from __future__ import annotations

import pytest

from dsdoctor.api import Compiler, Compilers, LibraryPath, Patient, RunNeeds
from dsdoctor.probes.launchers import library_path
from dsdoctor.testing import FakeHost, judge, missing, read
from dsdoctor_checks.python.libstdcxx_too_old import runtime_serves_the_compiler

OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)

NVME = RunNeeds(
    config={
        "optimizer": {"type": "AdamW", "params": {"lr": 1e-5}},
        "zero_optimization": {
            "stage": 3,
            "offload_optimizer": {"device": "nvme", "nvme_path": "/local"},
        },
    }
)


@pytest.mark.parametrize(
    ("release", "gcc", "run", "expected"),
    [
        pytest.param(29, "12.3.0", NVME, "warn", id="threads that wait, with gcc 12"),
        pytest.param(30, "12.3.0", NVME, "ok", id="of gcc 12, with gcc 12"),
        pytest.param(29, "11.4.0", NVME, "ok", id="threads that wait, with gcc 11"),
        pytest.param(28, "11.4.0", OFFLOAD, "warn", id="of gcc 10, with gcc 11"),
        pytest.param(29, "12.3.0", OFFLOAD, "ok", id="of gcc 11, with gcc 12"),
        pytest.param(30, "13.3.0", OFFLOAD, "warn", id="of gcc 12, with gcc 13"),
        pytest.param(33, "13.3.0", OFFLOAD, "ok", id="newer than the compiler"),
        pytest.param(28, "9.4.0", OFFLOAD, "ok", id="an old compiler"),
        pytest.param(28, None, OFFLOAD, "ok", id="no compiler"),
        pytest.param(28, "11.4.0", RunNeeds(), "skip", id="nothing to build"),
        pytest.param(None, "11.4.0", OFFLOAD, "skip", id="the system's own"),
    ],
)
def test_rows(release: int | None, gcc: str | None, run: RunNeeds, expected: str) -> None:
    judged = judge(
        runtime_serves_the_compiler,
        library_path=LibraryPath(
            cxx_runtime="/conda/lib/libstdc++.so.6" if release else None, cxx_release=release
        ),
        compilers=Compilers(
            cxx=Compiler(
                command="c++", path="/usr/bin/c++" if gcc else None, kind="gcc", version=gcc
            ),
            cc=Compiler(command="cc"),
        ),
        run_needs=run,
        deep_speed_install=missing(),
        extension_cache=missing(),
    )
    assert judged.status == expected


CONDA = {"/conda/conda-meta/history": "", "/conda/lib/libstdc++.so.6.0.29": ""}
LINK = {"/conda/lib/libstdc++.so.6": "/conda/lib/libstdc++.so.6.0.29"}
OTHER = {"/opt/gcc/lib64/libstdc++.so.6": "/opt/gcc/lib64/libstdc++.so.6.0.33"}


@pytest.mark.parametrize(
    ("files", "links", "variable", "expected"),
    [
        pytest.param(CONDA, LINK, "", ("/conda/lib/libstdc++.so.6", 29), id="a conda environment"),
        pytest.param({}, {}, "", (None, None), id="the system"),
        pytest.param(
            {"/opt/gcc/lib64/libstdc++.so.6.0.33": ""}, OTHER, "/opt/gcc/lib64",
            ("/opt/gcc/lib64/libstdc++.so.6", 33), id="LD_LIBRARY_PATH",
        ),
        pytest.param(
            {**CONDA, "/opt/gcc/lib64/libstdc++.so.6.0.33": ""}, {**LINK, **OTHER},
            "/opt/gcc/lib64", (None, None), id="two that differ",
        ),
        pytest.param(
            {"/conda/lib/libstdc++.so.6.0.29": ""}, LINK, "", (None, None), id="no conda"
        ),
    ],
)  # fmt: skip
def test_the_library(
    files: dict[str, str],
    links: dict[str, str],
    variable: str,
    expected: tuple[str | None, int | None],
) -> None:
    """A virtual environment on top of a conda one has the same library."""
    host = FakeHost(env={"LD_LIBRARY_PATH": variable}, files=files, links=links)
    patient = Patient(
        executable="/venv/bin/python", chosen_by="--python", version="3.11.7", kind="venv",
        prefix="/venv", base_prefix="/conda",
    )  # fmt: skip
    found = read(library_path, host, patient=patient)
    assert (found.cxx_runtime, found.cxx_release) == expected
