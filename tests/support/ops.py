"""Compiles DeepSpeed's ops once for all tests that train on CPUs."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from dsdoctor.smoke.launcher import WORKER

#: A lock that a killed session has left would hold this one up for ever.
_SCRIPT = f"""
import os, sys
sys.path.insert(0, {str(WORKER)!r})
from deepspeed.accelerator import get_accelerator
from dsdsmoke_rank import build_folder, refuse_stale_lock
for name in ("ShareMemCommBuilder", "FusedAdamBuilder", "CPUAdamBuilder"):
    builder = get_accelerator().create_op_builder(name)
    refuse_stale_lock(name, os.path.join(build_folder(builder), "lock"))
    builder.load(verbose=False)
"""


def compile_ops(env: Mapping[str, str] | None = None, seconds: float = 1500.0) -> None:
    """Fills the extension cache that the variables name; a matter of seconds where it is warm."""
    # ninja lies beside the interpreter
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-c", _SCRIPT],
        capture_output=True, text=True, timeout=seconds, check=False,
        env={**os.environ, "PATH": path, "DS_ACCELERATOR": "cpu", **(env or {})},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
