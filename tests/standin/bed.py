"""Environments in which a CUDA build of torch sees the GPUs of a scenario."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.nvml import fakenvml
from tests.nvml.fakenvml import Scenario
from tests.standin import build

#: What a caller's environment must not add: the bed decides what is visible.
_DROPPED = ("CUDA_", "NCCL_", "PYTORCH_", "TORCH_", "DS_", "LD_LIBRARY_PATH", "PYTHONPATH")


def is_built() -> bool:
    """Whether this interpreter's environment is the one that `build.py` made."""
    return build.OPERATORS.exists() and (build.DRIVER / "libcuda.so.1").exists()


def environment(scenario: Scenario, folder: Path, **variables: str) -> dict[str, str]:
    """Variables of a child that sees `scenario`; its files land in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_DROPPED)}
    own = fakenvml.environment(scenario, folder)
    libraries = [str(build.DRIVER), own["LD_LIBRARY_PATH"].split(os.pathsep)[0]]
    return {
        **kept,
        **own,
        "LD_LIBRARY_PATH": os.pathsep.join(libraries),
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), kept.get("PATH", "")]),
        "VIRTUAL_ENV": sys.prefix,
        "XDG_STATE_HOME": str(folder / "state"),
        "DSDOCTOR_RUNS": str(folder / "runs"),
        "TORCH_EXTENSIONS_DIR": str(build.HOME / "extensions"),
        "PYTORCH_NVML_BASED_CUDA_CHECK": "0",
        **variables,
    }


def python(
    code: str, env: dict[str, str], seconds: float = 120
) -> subprocess.CompletedProcess[str]:
    """Run a few lines in a child."""
    return subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=seconds,
        check=False,
    )  # fmt: skip


def dsdoctor(
    env: dict[str, str], *arguments: str, seconds: float = 240
) -> tuple[int, dict[str, Any]]:
    """Run a command of dsdoctor; its status and its JSON report."""
    done = subprocess.run(
        [sys.executable, "-m", "dsdoctor", *arguments, "--format", "json"],
        env=env, capture_output=True, text=True, timeout=seconds, check=False,
    )  # fmt: skip
    assert done.stdout, done.stderr
    report = json.loads(done.stdout)
    assert isinstance(report, dict)
    return done.returncode, report
