"""Which built ops `remove-stale-builds` finds, and which it leaves alone."""

from __future__ import annotations

from typing import Any

import pytest

from dsdoctor.fixes.probes import stale_builds
from dsdoctor.model.facts.python import TorchBuild
from dsdoctor.model.facts.repair import StaleBuilds
from dsdoctor.model.facts.toolchain import ExtensionCache
from dsdoctor.testing import FakeHost

CACHE = ExtensionCache(root="/c")
OP = "/c/py311_cu130/fused_adam"
GONE = "cflags = -isystem /old/site-packages/torch/include -fPIC\n"


def found(
    version: str, *, locked: bool = False, builders: tuple[dict[str, Any], ...] = ()
) -> StaleBuilds:
    files = {f"{OP}/build.ninja": GONE, f"{OP}/fused_adam.so": ""}
    host = FakeHost(
        files={**files, f"{OP}/lock": ""} if locked else files,
        queries={"processes": list(builders)},
    )
    fact = stale_builds.function(host, CACHE, TorchBuild(version=version, path="/new/torch"))
    assert isinstance(fact, StaleBuilds)
    return fact


@pytest.mark.parametrize(
    ("version", "locked", "taken"),
    [
        pytest.param("2.13.0", False, True, id="an op without a lock"),
        pytest.param("2.13.0", True, False, id="an old torch waits for the lock"),
        pytest.param("2.14.0", True, True, id="a new torch leaves the file after each build"),
    ],
)
def test_an_op_whose_torch_is_gone(version: str, locked: bool, taken: bool) -> None:
    fact = found(version, locked=locked)
    assert (list(fact.folders), fact.held) == (([OP], ()) if taken else ([], (OP,)))


def test_an_op_that_is_being_built_is_left_alone() -> None:
    builder = {"pid": 7, "name": "ninja", "argv": ["ninja"], "cwd": OP}
    assert found("2.14.0", locked=True, builders=(builder,)).held == (OP,)
