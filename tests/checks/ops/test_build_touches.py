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
        (Libaio(header=True, library=True), NVME, "ok"),
        (Libaio(header=False, library=True), NVME, "fail"),
        (Libaio(header=True, library=False), NVME, "fail"),
        (Libaio(header=False, library=False), NVME, "fail"),
        (Libaio(header=False, library=False), OFFLOAD, "skip"),
        (Libaio(header=False, library=False), ANY, "skip"),
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
        ([("built extensions", False), ("Triton cache", False)], OFFLOAD, ["ok"]),
        ([("temporary files", True), ("--path", True)], OFFLOAD, ["ok"]),
        ([("built extensions", True)], OFFLOAD, ["fail"]),
        ([("built extensions", True)], ANY, ["warn"]),
        ([("Triton cache", True)], OFFLOAD, ["warn"]),
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
