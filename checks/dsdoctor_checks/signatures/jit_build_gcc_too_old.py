"""How `jit-build-gcc-too-old` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-gcc-too-old"
TITLE = "the host gcc is too old for torch's headers"
HINT = "install gcc 9 or newer and set `CC` and `CXX`"
FIXES: tuple[str, ...] = ("install-compiler",)

SIGNATURES = (
    Signature(
        anchor=(
            "You need C++14",
            "You need GCC",
            "GCC 9 or later",
            "is less than the minimum required",
            "unrecognized command line option",
            "or newer is required to",
        ),
        pattern=(
            r"You need C\+\+1[47]|You need (?:GCC|a C\+\+)|GCC \d+ or later"
            r"|is less than the minimum required version|unrecognized command[- ]line option .?-std=c\+\+(?:14"
            r"|17|20|2a)"
        ),
        examples=(
            "error: #error You need C++14 to compile PyTorch",
            "error: unrecognized command line option '-std=c++17'",
        ),
        not_examples=("unrecognized command line option '-Wno-x'",),
        weight=66,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        anchor="C++17 or later",
        pattern=r"C\+\+17 or later compatible compiler",
        examples=("#error C++17 or later compatible compiler is required",),
        not_examples=("C++17",),
        weight=70,
        requires=(
            "gcc version 4.",
            "gcc version 5.",
            "gcc version 6.",
            "gcc version 7.",
            "GCC 7",
            "gcc (GCC) 4.",
            "gcc-7",
            "(Ubuntu 7.",
            "g++ 7",
            "GCC version: (Ubuntu 7",
        ),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        anchor=("ABI incompatible with", "ABI-incompatible with"),
        pattern=r"may be ABI[- ]incompatible with",
        examples=("Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",),
        not_examples=("ABI",),
        weight=22,
    ),
)
