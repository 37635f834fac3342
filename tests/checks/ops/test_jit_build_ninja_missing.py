"""Rows of `jit-build-ninja-missing`."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from dsdoctor.api import (
    Compiler,
    Compilers,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    ImportOutcome,
    RunNeeds,
)
from dsdoctor.testing import judge
from dsdoctor_checks.ops import jit_build_ninja_missing

GCC = Compiler(command="c++", path="/usr/bin/c++", kind="gcc", version="12.2.0")

NO_CONFIG = RunNeeds()
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "Adam"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
FUSED = RunNeeds(config={"optimizer": {"type": "AdamW"}, "zero_optimization": {"stage": 2}})
PLAIN = RunNeeds(config={"zero_optimization": {"stage": 2}})


@pytest.mark.parametrize(
    ("fact", "run", "expected"),
    [
        pytest.param(
            Compilers(cxx=GCC, cc=GCC, ninja="/usr/bin/ninja"), OFFLOAD, "ok", id="ninja is on PATH"
        ),
        pytest.param(
            Compilers(cxx=GCC, cc=GCC, ninja="/usr/bin/ninja", ninja_error="exit 127"),
            OFFLOAD,
            "fail",
            id="ninja is on PATH and does not work",
        ),
        pytest.param(
            Compilers(cxx=GCC, cc=GCC), PLAIN, "ok", id="no ninja for a config that builds nothing"
        ),
        pytest.param(Compilers(cxx=GCC, cc=GCC), NO_CONFIG, "warn", id="no ninja and no config"),
        pytest.param(
            Compilers(cxx=GCC, cc=GCC), OFFLOAD, "fail", id="no ninja for a config with CPU offload"
        ),
        pytest.param(
            Compilers(cxx=GCC, cc=GCC, ninja_in_env="/v/bin/ninja"),
            NO_CONFIG,
            "warn",
            id="ninja is in the venv but not on PATH, and no config is given",
        ),
        pytest.param(
            Compilers(cxx=GCC, cc=GCC, ninja_in_env="/v/bin/ninja"),
            FUSED,
            "fail",
            id="ninja is in the venv but not on PATH, for a fused optimizer",
        ),
    ],
)
def test_rows(fact: Compilers, run: RunNeeds, expected: str) -> None:
    assert (
        judge(jit_build_ninja_missing.ninja_is_found, compilers=fact, run_needs=run).status
        == expected
    )


def test_ops_that_are_built_need_no_ninja() -> None:
    compilers = Compilers(cxx=GCC, cc=GCC)
    check = jit_build_ninja_missing.ninja_is_found
    built = ExtensionCache(root="/c", built=("cpu_adam",))
    assert (
        judge(check, compilers=compilers, run_needs=OFFLOAD, extension_cache=built).status == "ok"
    )
    prebuilt = DeepSpeedInstall(version="0.19.8", installed_ops={"cpu_adam": True})
    assert (
        judge(check, compilers=compilers, run_needs=OFFLOAD, deep_speed_install=prebuilt).status
        == "ok"
    )


def test_an_environment_that_is_not_activated_is_named() -> None:
    compilers = Compilers(cxx=GCC, cc=GCC, ninja_in_env="/v/bin/ninja")
    facts: dict[str, Any] = {"compilers": compilers}
    (finding,) = judge(jit_build_ninja_missing.ninja_is_found, **facts).bad
    assert "`/v/bin` is not on PATH" in finding.message
    assert "source /v/bin/activate" in finding.hint


JOB = msgspec.structs.replace(PLAIN, command=("deepspeed", "train.py"))


@pytest.mark.parametrize(
    ("run", "version", "accelerator", "built", "expected"),
    [
        pytest.param(JOB, "0.19.8", "cpu", (), "fail", id="ranks on CPUs build their collectives"),
        pytest.param(JOB, "0.19.8", "cpu", ("deepspeed_shm_comm",), "ok", id="built before"),
        pytest.param(JOB, "0.14.0", "cpu", (), "ok", id="a release without them"),
        pytest.param(JOB, "0.19.8", "cuda", (), "ok", id="ranks on GPUs"),
        pytest.param(PLAIN, "0.19.8", "cpu", (), "ok", id="no job"),
        pytest.param(RunNeeds(command=("deepspeed", "t.py")), "0.19.8", "cpu", (), "fail", id="no config"),
        pytest.param(
            RunNeeds(command=("torchrun", "t.py"), uses_deepspeed=False), "0.19.8", "cpu", (), "ok",
            id="a job without DeepSpeed",
        ),
    ],
)  # fmt: skip
def test_ranks_on_cpus(
    run: RunNeeds, version: str, accelerator: str, built: tuple[str, ...], expected: str
) -> None:
    """DeepSpeed 0.14.2 and later build `deepspeed_shm_comm` when a rank on a CPU joins."""
    judged = judge(
        jit_build_ninja_missing.ninja_is_found,
        compilers=Compilers(cxx=GCC, cc=GCC),
        run_needs=run,
        deep_speed_install=DeepSpeedInstall(version=version),
        deep_speed_live=DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=accelerator),
        extension_cache=ExtensionCache(root="/c", built=built),
    )
    assert judged.status == expected
