"""Tests on a real NVIDIA GPU; deselected where there is none (`-m "not gpu"`)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Command = Callable[..., tuple[int, dict[str, Any]]]


@pytest.fixture
def dsdoctor(tmp_path: Path) -> Command:
    """Runs a command of dsdoctor; exit status and JSON report."""
    env = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state")}

    def run(*args: str) -> tuple[int, dict[str, Any]]:
        result = subprocess.run(
            [sys.executable, "-m", "dsdoctor", *args, "--format", "json"],
            capture_output=True, text=True, env=env, timeout=300, check=False,
        )  # fmt: skip
        assert result.stdout, result.stderr
        value = json.loads(result.stdout)
        assert isinstance(value, dict)
        return result.returncode, value

    return run


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Takes the tests out where no NVIDIA driver is loaded, whatever `-m` says.

    `DSDOCTOR_GPU_TESTS` is set by `tests/standin`, which runs them on stand-in libraries.
    """
    if Path("/dev/nvidiactl").exists() or Path("/dev/dxg").exists():
        return
    if os.environ.get("DSDOCTOR_GPU_TESTS"):
        return
    out = [item for item in items if item.get_closest_marker("gpu") is not None]
    if out:
        config.hook.pytest_deselected(items=out)
        items[:] = [item for item in items if item not in out]
