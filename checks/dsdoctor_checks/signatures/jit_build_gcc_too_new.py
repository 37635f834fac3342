"""How `jit-build-gcc-too-new` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-gcc-too-new"
TITLE = "the host gcc is newer than this nvcc accepts"
HINT = "install an older gcc and set `CC` and `CXX`, or a newer toolkit"
FIXES: tuple[str, ...] = ("install-compiler",)

SIGNATURES = (
    Signature(
        anchor=(
            "unsupported GNU version",
            "unsupported clang version",
            "unsupported Microsoft Visual Studio version",
        ),
        pattern=r"unsupported (?:GNU|clang|Microsoft Visual Studio) version",
        examples=(
            "error: #error -- unsupported GNU version! gcc versions later than 12 are not supported!",
        ),
        not_examples=("GNU version 12",),
        weight=74,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("The current installed version of", "is greater than the maximum required"),
        pattern=r"installed version of \S+ \([\d.]+\) is greater than the maximum",
        examples=(
            "RuntimeError: The current installed version of g++ (13.2) is greater than the maximum required version by CUDA 11.8",
        ),
        not_examples=("is greater than the maximum batch",),
        weight=74,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
    Signature(
        anchor=("parameter packs not expanded",),
        pattern=r"parameter packs not expanded with",
        examples=("std_function.h:435:145: error: parameter packs not expanded with '...':",),
        not_examples=("packs",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
