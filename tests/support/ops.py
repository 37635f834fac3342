"""Compiles DeepSpeed's ops once for all tests that train on CPUs."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from dsdoctor import process
from dsdoctor.smoke.launcher import WORKER

#: A lock that a killed session has left would hold this one up for ever.
_SCRIPT = f"""
import os, sys
sys.path.insert(0, {str(WORKER)!r})
from deepspeed.accelerator import get_accelerator
from dsdsmoke_rank import build_folder, refuse_stale_lock
for name in ("ShareMemCommBuilder", "FusedAdamBuilder", "CPUAdamBuilder"):
    builder = get_accelerator().create_op_builder(name)
    folder = build_folder(builder)
    if folder is not None:  # else no file can block the build
        refuse_stale_lock(name, os.path.join(folder, "lock"))
    builder.load(verbose=False)
"""


def compile_ops(env: Mapping[str, str] | None = None, seconds: float = 3600.0) -> None:
    """Fills the extension cache that the variables name; a matter of seconds where it is warm.

    Three minutes on two quiet cores, half an hour on ones that a dozen programs share. Compilers
    that run when the time is over are ended too.
    """
    # ninja lies beside the interpreter
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = process.run(
        [sys.executable, "-c", _SCRIPT],
        timeout=seconds,
        env={**os.environ, "PATH": path, "DS_ACCELERATOR": "cpu", **(env or {})},
    )
    assert done.ok, done.stderr[-3000:].decode(errors="replace")
