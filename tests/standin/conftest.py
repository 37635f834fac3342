"""Tests of the stand-in CUDA; those marked `standin` need the environment of `tests/standin/run.sh`."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
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


#: CPU seconds of the processes that each test started.
_spent: dict[str, float] = {}


@pytest.fixture(autouse=True)
def _counts_cpu(request: pytest.FixtureRequest) -> Iterator[None]:
    """Wall time says little on a busy machine; nearly all of the work is done by children."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    _spent[request.node.name] = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Which tests cost the most."""
    if not bed.is_built():
        return
    most = sorted(_spent.items(), key=lambda one: -one[1])[:12]
    used = resource.getrusage(resource.RUSAGE_CHILDREN)  # what fixtures of modules started, too
    total = used.ru_utime + used.ru_stime
    terminalreporter.section(f"{total:.0f} s of CPU time in children, the most of a test")
    for name, seconds in most:
        terminalreporter.write_line(f"{seconds:7.1f} s  {name}")


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
