"""Tests of the stand-in CUDA; those marked `standin` need the environment of `tests/standin/run.sh`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.nvml import scenarios
from tests.nvml.fakenvml import Scenario
from tests.standin import bed

GIB = 1 << 30


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests out where there is no such environment, whatever `-m` says."""
    if bed.is_built():
        return
    out = [item for item in items if item.get_closest_marker("standin") is not None]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]


def machine(gpus: int = 2, memory: int = 4 * GIB, **more: Any) -> Scenario:
    """The first GPUs of an HGX H100, with so little memory that the host can hold it."""
    scenario = scenarios.h100_x8()
    scenario["gpus"] = scenario["gpus"][:gpus]
    for gpu in scenario["gpus"]:
        gpu["memory_total"] = memory
        gpu["memory_reserved"] = 0
    scenario.update(more)  # type: ignore[typeddict-item]
    return scenario


@pytest.fixture
def shown(tmp_path: Path) -> Callable[..., dict[str, str]]:
    """The environment of a child that sees a machine: `shown(gpus=2, fail={...})`."""

    def of(*, variables: dict[str, str] | None = None, **machine_: Any) -> dict[str, str]:
        return bed.environment(machine(**machine_), tmp_path / "bed", **variables or {})

    return of
