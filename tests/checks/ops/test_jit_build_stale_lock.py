"""Rows of `jit-build-stale-lock`."""

from __future__ import annotations

import pytest

from dsdoctor.api import BuildLock, ExtensionCache, RunNeeds
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
    ).status
    assert found == expected
