"""Rows of `jit-build-stale-lock`."""

from __future__ import annotations

import pytest

from dsdoctor.api import (
    BuildLock,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    ImportOutcome,
    RunNeeds,
    TorchBuild,
)
from dsdoctor.testing import judge
from dsdoctor_checks.ops import jit_build_stale_lock


@pytest.mark.parametrize(
    ("fact", "expected"),
    [
        pytest.param(
            BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=3, builders=()),
            "ok",
            id="a lock three seconds old",
        ),
        pytest.param(
            BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=600, builders=()),
            "ok",
            id="a lock ten minutes old, the oldest that counts as fresh",
        ),
        pytest.param(
            BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=5000, builders=(77,)),
            "ok",
            id="an old lock whose builder still runs",
        ),
        pytest.param(
            BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=601, builders=()),
            "fail",
            id="a lock one second past ten minutes without a builder",
        ),
        pytest.param(
            BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=864000, builders=()),
            "fail",
            id="a lock ten days old without a builder",
        ),
    ],
)
def test_rows(fact: BuildLock, expected: str) -> None:
    assert (
        judge(
            jit_build_stale_lock.locks_are_alive,
            extension_cache=ExtensionCache(root="/c", locks=(fact,)),
            torch_build=TorchBuild(version="2.13.0+cu130"),
        ).status
        == expected
    )


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        pytest.param(
            {"optimizer": {"type": "AdamW"}}, "warn", id="the config does not need the locked op"
        ),
        pytest.param(
            {
                "optimizer": {"type": "AdamW"},
                "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
            },
            "fail",
            id="the config needs the locked op",
        ),
    ],
)
def test_by_what_the_config_needs(config: dict[str, object], expected: str) -> None:
    lock = BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=5000, builders=())
    found = judge(
        jit_build_stale_lock.locks_are_alive,
        extension_cache=ExtensionCache(root="/c", locks=(lock,)),
        run_needs=RunNeeds(config=config),
        torch_build=TorchBuild(version="2.13.0+cu130"),
    ).status
    assert found == expected


@pytest.mark.parametrize(
    ("torch", "expected"),
    [
        pytest.param("2.13.2", "fail", id="the last torch that waits for the file"),
        pytest.param("2.14.0+cu130", "ok", id="the first torch whose lock ends with its process"),
        pytest.param("2.15.0", "ok", id="a newer torch"),
        pytest.param("3.0.0a0+git1b2c", "ok", id="a development build of a later torch"),
        pytest.param(None, "skip", id="torch is not installed"),
    ],
)
def test_by_whether_torch_waits_for_the_file(torch: str | None, expected: str) -> None:
    lock = BuildLock(path="/c/cpu_adam/lock", op="cpu_adam", age_seconds=5000, builders=())
    found = judge(
        jit_build_stale_lock.locks_are_alive,
        extension_cache=ExtensionCache(root="/c", locks=(lock,)),
        torch_build=TorchBuild(version=torch),
    )
    assert found.status == expected


@pytest.mark.parametrize(
    ("folder", "torch", "expected"),
    [
        pytest.param("py311_cu130", TorchBuild(version="2.13.0", cuda="13.0"), "fail", id="own"),
        pytest.param("py311_cpu", TorchBuild(version="2.13.0+cpu"), "fail", id="own, for CPUs"),
        pytest.param("py311_cu130", TorchBuild(version="2.13.0+cpu"), "ok", id="of a CUDA build"),
        pytest.param(
            "py311_cu130", TorchBuild(version="2.13.0", cuda="12.8"), "ok", id="of another CUDA"
        ),
        pytest.param("py311_cpu", TorchBuild(version="2.13.0", hip="7.0"), "fail", id="ROCm"),
        pytest.param("shared", TorchBuild(version="2.13.0", cuda="12.8"), "fail", id="one for all"),
    ],
)
def test_locks_of_other_builds_of_torch(folder: str, torch: TorchBuild, expected: str) -> None:
    path = f"/c/{folder}/cpu_adam/lock"
    lock = BuildLock(path=path, op="cpu_adam", age_seconds=5000, builders=())
    found = judge(
        jit_build_stale_lock.locks_are_alive,
        extension_cache=ExtensionCache(root="/c", locks=(lock,)),
        torch_build=torch,
    )
    assert found.status == expected


def test_without_locks_it_does_not_matter_which_torch_is_installed() -> None:
    found = judge(jit_build_stale_lock.locks_are_alive, extension_cache=ExtensionCache(root="/c"))
    assert found.status == "ok"


def test_no_torch_is_said_to_wait_for_nothing() -> None:
    (found,) = judge(
        jit_build_stale_lock.locks_are_alive,
        extension_cache=ExtensionCache(root="/c"),
        torch_build=TorchBuild(),
    ).findings
    assert (found.status.value, found.message) == ("ok", "")


@pytest.mark.parametrize(("accelerator", "expected"), [("cpu", "fail"), ("cuda", "warn")])
def test_the_lock_of_the_op_that_ranks_on_cpus_build(accelerator: str, expected: str) -> None:
    lock = BuildLock(path="/c/deepspeed_shm_comm/lock", op="deepspeed_shm_comm", age_seconds=9000)
    judged = judge(
        jit_build_stale_lock.locks_are_alive,
        extension_cache=ExtensionCache(root="/c", locks=(lock,)),
        run_needs=RunNeeds(
            config={"zero_optimization": {"stage": 2}}, command=("torchrun", "t.py")
        ),
        torch_build=TorchBuild(version="2.13.0"),
        deep_speed_install=DeepSpeedInstall(version="0.19.8"),
        deep_speed_live=DeepSpeedLive(imported=ImportOutcome(ok=True), accelerator=accelerator),
    )
    assert judged.status == expected
