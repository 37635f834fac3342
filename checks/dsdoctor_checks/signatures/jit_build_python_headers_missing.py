"""How `jit-build-python-headers-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-python-headers-missing"
TITLE = "Python.h is missing"
HINT = "install the Python headers (`python3-dev`, `python3-devel`)"
FIXES: tuple[str, ...] = ("install-python-headers",)

SIGNATURES = (
    Signature(
        anchor=("Python.h", "pyconfig.h"),
        pattern=(
            r"(?:Python|pyconfig)\.h['\x22]?:? (?:No such file|file not found)"
            r"|Cannot open include file: 'Python\.h'|Python\.h.{0,30}(?:missing"
            r"|not found)"
        ),
        examples=("fatal error: Python.h: No such file or directory",),
        not_examples=("#include <Python.h>",),
        weight=74,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
            "cuda-toolkit-mismatch",
        ),
    ),
)
