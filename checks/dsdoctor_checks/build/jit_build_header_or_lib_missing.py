"""A CUDA or system header or library is missing in the build.

## Why it matters
A JIT build includes headers of CUDA and links its libraries; a partial toolkit has the compiler
without them.

## What to do
Install the development package that holds the named header or library (`cuda-libraries-dev`,
`cuda-cudart-dev`, ...).

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition(
    "jit-build-header-or-lib-missing", id="DSD452", scope=Scope.USER_ENV, since="0.1"
)

HINT = "install the development package that holds the named header or library (`cuda-libraries-dev`, `cuda-cudart-dev`, ...)"

SIGNATURES = (
    Signature(
        anchor="fatal error:",
        pattern=(
            r"fatal error: (?!Python\.h|pyconfig|libaio|aio)(?P<h>[\w./+-]+\.(?:h"
            r"|hpp|cuh|inc))['\x22]?:? (?:No such|file not found)|fatal error: '?(?!Python"
            r"|libaio|aio)[\w./+-]+'? file not found|Cannot open include file: '(?!Python)"
        ),
        examples=("x.h:7:10: fatal error: cusparse.h: No such file or directory",),
        not_examples=("x.h:12:10: fatal error: Python.h: No such file or directory",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("cannot find -l", "library not found for -l", "cannot find -l"),
        pattern=r"(?:cannot find|library not found for) -l(?!aio\b|mpi)(?P<lib>[\w.+-]+)",
        examples=("/usr/bin/ld: cannot find -lcurand: No such file or directory",),
        not_examples=("ld: cannot find -laio",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor="undefined symbol: curand",
        pattern=r"undefined symbol: curand\w+",
        examples=("ImportError: /x/cpu_adam.so: undefined symbol: curandCreateGenerator",),
        not_examples=("undefined symbol: _ZN3c10",),
        weight=56,
    ),
    Signature(
        anchor="cannot open source file",
        pattern=r"cannot open source file \x22",
        examples=('error: cannot open source file "cuda_runtime.h"',),
        not_examples=("open source file",),
        weight=60,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
