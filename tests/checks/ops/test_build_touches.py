"""libaio_missing, build_folder_noexec, and which ops a config needs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from dsdoctor.api import Compiler, Compilers, Libaio, Place, RunNeeds, Storage
from dsdoctor.host import HostError, LocalHost
from dsdoctor.probes.libaio import libaio
from dsdoctor.testing import judge
from dsdoctor_checks.cuda import _ops
from dsdoctor_checks.ops import build_folder_noexec, libaio_missing
from dsdoctor_checks.ops._util import needed_ops
from tests.checks.machines import ANY, NO_ENV, OFFLOAD

NVME = RunNeeds(
    config={
        "optimizer": {"type": "AdamW"},
        "zero_optimization": {"stage": 3, "offload_param": {"device": "nvme", "nvme_path": "/n"}},
    }
)


@pytest.mark.parametrize(
    ("fact", "run", "status"),
    [
        pytest.param(
            Libaio(header=True, library=True),
            NVME,
            "ok",
            id="header and library are installed for NVMe offload",
        ),
        pytest.param(
            Libaio(header=False, library=True),
            NVME,
            "fail",
            id="the header is missing for NVMe offload",
        ),
        pytest.param(
            Libaio(header=True, library=False),
            NVME,
            "fail",
            id="the library is missing for NVMe offload",
        ),
        pytest.param(
            Libaio(header=False, library=False),
            NVME,
            "fail",
            id="header and library are missing for NVMe offload",
        ),
        pytest.param(
            Libaio(header=False, library=False),
            OFFLOAD,
            "skip",
            id="CPU offload does not use libaio",
        ),
        pytest.param(
            Libaio(header=False, library=False), ANY, "skip", id="no config asks for libaio"
        ),
    ],
)
def test_libaio(fact: Libaio, run: RunNeeds, status: str) -> None:
    check = libaio_missing.libaio_is_there
    assert judge(check, libaio=fact, run_needs=run).statuses == [status]


def compilers(cc: str | None) -> Compilers:
    one = Compiler(command="cc", path=cc, kind="gcc", version="12")
    return Compilers(cxx=one, cc=one)


REAL = pytest.mark.skipif(
    shutil.which("gcc") is None or not sys.platform.startswith("linux"), reason="asks a real gcc"
)


@REAL
def test_a_real_compiler_is_asked(tmp_path: Path) -> None:
    import os

    gcc = compilers(shutil.which("gcc"))
    (tmp_path / "libaio.h").write_text("int io_submit(void);\n")
    (tmp_path / "libaio.so").write_text("")
    env = {**os.environ, "CFLAGS": f"-nostdinc -I{tmp_path}", "LIBRARY_PATH": str(tmp_path)}
    assert libaio.function(LocalHost(env), NVME, gcc) == Libaio(header=True, library=True)
    bare = {**os.environ, "CFLAGS": "-nostdinc"}
    assert libaio.function(LocalHost(bare), NVME, gcc).header is False


def test_nobody_is_asked_without_nvme() -> None:
    with pytest.raises(HostError):
        libaio.function(LocalHost(), OFFLOAD, compilers("/usr/bin/cc"))
    with pytest.raises(HostError):
        libaio.function(LocalHost(), NVME, compilers(None))


@pytest.mark.parametrize(
    ("places", "run", "status"),
    [
        pytest.param(
            [("built extensions", False), ("Triton cache", False)],
            OFFLOAD,
            ["ok"],
            id="code may run from both caches",
        ),
        pytest.param(
            [("temporary files", True), ("--path", True)],
            OFFLOAD,
            ["ok"],
            id="other places forbid it, which no extension is loaded from",
        ),
        pytest.param(
            [("built extensions", True)],
            OFFLOAD,
            ["fail"],
            id="the folder of the extension that the config needs is noexec",
        ),
        pytest.param(
            [("built extensions", True)],
            ANY,
            ["warn"],
            id="the extension folder is noexec, and no config is given",
        ),
        pytest.param([("Triton cache", True)], OFFLOAD, ["warn"], id="Triton's cache is noexec"),
    ],
)
def test_noexec(places: list[tuple[str, bool]], run: RunNeeds, status: list[str]) -> None:
    fact = Storage(
        places=tuple(
            Place(purpose=purpose, path="/c", mount="/home", noexec=flag)
            for purpose, flag in places
        )
    )
    check = build_folder_noexec.built_code_can_be_loaded
    assert judge(check, storage=fact, run_needs=run).statuses == status


CONFIGS: list[dict[str, Any]] = [
    {"optimizer": {"type": "Lamb"}},
    {"optimizer": {"type": "Lion"}, "zero_optimization": {"offload_optimizer": {"device": "cpu"}}},
    {"zero_optimization": {"stage": 3, "zero_quantized_weights": True}},
    {"hybrid_engine": {"enabled": True}},
    {"compile": {"deepcompile": True}},
    NVME.config or {},
]


@pytest.mark.parametrize("config", CONFIGS, ids=str)
def test_both_families_name_the_same_ops(config: dict[str, Any]) -> None:
    """The toolkit's checks and the compiler's must not differ on what is built."""
    of_cuda = {op.name for op in _ops.needed_ops(config, None, NO_ENV)}
    assert set(needed_ops(config)) == of_cuda
    assert of_cuda
