"""Rows of `extension-cache-unwritable`."""

from __future__ import annotations

import pytest

from dsdoctor.api import ExtensionCache, RunNeeds
from dsdoctor.testing import judge
from dsdoctor_checks.ops import extension_cache_unwritable

NO_CONFIG = RunNeeds()
OFFLOAD = RunNeeds(
    config={
        "optimizer": {"type": "Adam"},
        "zero_optimization": {"stage": 2, "offload_optimizer": {"device": "cpu"}},
    }
)
PLAIN = RunNeeds(config={"zero_optimization": {"stage": 2}})


@pytest.mark.parametrize(
    ("fact", "run", "expected"),
    [
        pytest.param(
            ExtensionCache(root="/c", free_bytes=1 << 34),
            OFFLOAD,
            "ok",
            id="a writable folder with 16 GiB free",
        ),
        pytest.param(
            ExtensionCache(root="/c"),
            OFFLOAD,
            "ok",
            id="a writable folder whose free space is unknown",
        ),
        pytest.param(
            ExtensionCache(root="/c", writable=False),
            PLAIN,
            "ok",
            id="a read-only folder for a config that builds nothing",
        ),
        pytest.param(
            ExtensionCache(root="/c", writable=False),
            NO_CONFIG,
            "warn",
            id="a read-only folder and no config",
        ),
        pytest.param(
            ExtensionCache(root="/c", writable=False, from_env=True),
            OFFLOAD,
            "fail",
            id="the folder that the variable names is read-only",
        ),
        pytest.param(
            ExtensionCache(root="/c", free_bytes=1 << 20), OFFLOAD, "fail", id="a full folder"
        ),
        pytest.param(
            ExtensionCache(root="/c", writable=False, built=("cpu_adam",)),
            OFFLOAD,
            "ok",
            id="a read-only folder in which the op is already built",
        ),
    ],
)
def test_rows(fact: ExtensionCache, run: RunNeeds, expected: str) -> None:
    assert (
        judge(
            extension_cache_unwritable.cache_is_writable, extension_cache=fact, run_needs=run
        ).status
        == expected
    )
