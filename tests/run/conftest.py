"""Jobs of two ranks with DeepSpeed's engines."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from dsdoctor.host import free_port


@pytest.fixture(name="port")
def _port() -> Iterator[str]:
    """A master port; DeepSpeed's ops leave their shared memory behind, whose names have it."""
    port = str(free_port())
    yield port
    for path in Path("/dev/shm").glob(f"deepspeed_*_{port}_*"):
        path.unlink()


@pytest.fixture(name="job")
def _job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The script, in a place of the user's own."""
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    path = tmp_path / "train.py"
    shutil.copy(Path(__file__).with_name("engine_job.py"), path)
    return str(path)


@pytest.fixture(name="light_job")
def _light_job(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same without an engine."""
    monkeypatch.setenv("DS_ACCELERATOR", "cpu")
    path = tmp_path / "train.py"
    shutil.copy(Path(__file__).with_name("light_job.py"), path)
    return str(path)
