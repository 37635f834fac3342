"""The host compiler is too old for the headers of this torch.

## Why it matters
Extensions include torch's headers, so they are compiled to torch's C++ standard: C++17 since torch
2.1, C++20 since 2.12. An older gcc stops at those headers, in the build of any op.

## What to do
Install a newer compiler and set `CC` and `CXX` to it.

## References
- torch/utils/cpp_extension.py: the `-std=` that it passes, `MINIMUM_GCC_VERSION`
- DeepSpeed op_builder/builder.py: `cxx_args`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    ExtensionCache,
    Finding,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    ok,
    skip,
)
from dsdoctor_checks._util import pair

from ._tables import STANDARDS
from ._util import jit_ops, lacking

CONDITION = Condition(
    "jit-build-gcc-too-old",
    id="DSD404",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-compiler",),
)


@check(CONDITION)
def compiler_suits_torch(
    compilers: Compilers,
    torch: TorchBuild,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
) -> Iterator[Finding]:
    """Compares gcc with the C++ standard of torch's headers."""
    compiler = compilers.cxx
    release = pair(torch.version)
    if compiler.kind != "gcc" or compiler.major is None or release is None:
        yield skip("the bound is known for gcc alone, and for a torch that tells its version")
        return
    row = next((row for row in STANDARDS if release >= row[0]), None)
    if row is None:
        yield skip(f"torch {torch.version} is older than the table", torch=torch.version)
        return
    _, standard, oldest = row
    evidence: dict[str, Any] = {
        "compiler": compiler.path,
        "compiler_version": compiler.version,
        "torch": torch.version,
        "standard": standard,
        "oldest_that_serves": oldest,
        "source": "table",
    }
    ops = jit_ops(run, deepspeed, cache)
    if compiler.major >= oldest or ops == ():
        yield ok(**evidence)
        return
    yield lacking(
        ops,
        f"`{compiler.command}` is gcc {compiler.version}, but the headers of torch {torch.version} "
        f"are {standard}, which needs gcc {oldest} or newer",
        effect="every build of an op stops with errors inside torch's headers",
        hint=f"install gcc {oldest} or newer and `export CC=gcc-{oldest} CXX=g++-{oldest}`",
        **evidence,
    )


HINT = "install gcc 9 or newer and set `CC` and `CXX`"

SIGNATURES = (
    Signature(
        anchor=(
            "You need C++1",
            "You need GCC",
            "is less than the minimum required",
            "unrecognized command line option",
            "or newer is required to",
            "unrecognized command-line option ",
            "You need a C++",
            " or later",
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
        examples=(
            "#error C++17 or later compatible compiler is required",
            "#error C++17 or later compatible compiler is required to use PyTorch.",
        ),
        not_examples=(
            "C++17",
            "the code is written in C++17 or later",
        ),
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
        examples=(
            "Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",
            "Your compiler (c++) may be ABI incompatible with PyTorch.",
        ),
        not_examples=(
            "built with _GLIBCXX_USE_CXX11_ABI=0, ABI compatible",
            "the plugin is not ABI incompatible with this release",
        ),
        weight=22,
    ),
    Signature(
        anchor=("fatal error:", "unsupported GNU version", "invalid value 'c++"),
        pattern=(
            r"fatal error: (?:optional|string_view|variant|any"
            r"|filesystem|charconv|concepts|span|ranges|bit"
            r"|source_location|memory_resource): No such file"
            r"|unsupported GNU version! gcc (?:versions? )?(?:earlier"
            r"|older|\d[\d.]* (?:and|or) (?:up|newer|later))"
            r"|invalid value 'c\+\+(?:17|20|2a)' in '-std"
        ),
        examples=(
            "c10/util/Optional.h:4:10: fatal error: optional: No such file or directory",
            "c10/util/strides.h:3:10: fatal error: concepts: No such file or directory",
            "error: invalid value 'c++20' in '-std=c++20'",
        ),
        not_examples=(
            "fatal error: cusparse.h: No such file or directory",
            "#error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        ),
        weight=66,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
            "jit-build-gcc-too-new",
        ),
    ),
    Signature(
        anchor=(
            "with the configured host compiler",
            "STL1000: Unexpected compiler version",
            "support for the ISO C++ 20",
            "Error: no such instruction:",
            "-march=",
            "C++ versions less than C++1",
            "requires at least C++",
        ),
        pattern=(
            r"-std=c\+\+\d\w flag is not supported with the configured host compiler"
            r"|STL1000: Unexpected compiler version|library support for the ISO C\+\+ 20"
            r"|Error: no such instruction: |bad value \(.{1,30}\) for .{0,3}-march="
            r"|C\+\+ versions less than C\+\+1\d are not supported"
            r"|#error.{0,40}requires at least C\+\+"
        ),
        examples=(
            "nvcc warning : The -std=c++17 flag is not supported with the configured host compiler. Flag will be ignored.",
            "/tmp/ccX.s:120: Error: no such instruction: `vmovdqu64 %zmm0,(%rax)'",
            "cc1plus: error: bad value ('tigerlake') for '-march=' switch",
            "#error C++ versions less than C++14 are not supported.",
        ),
        not_examples=(
            "nvcc warning : The -std=c++17 flag is used with the configured host compiler",
            "g++ -O3 -march=native -fopenmp -c cpu_adam.cpp",
        ),
        weight=58,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        anchor=("GCC", "gcc", "g++"),
        pattern=(
            r"(?:GCC|gcc|g\+\+)[- ](?:version )?\d[\d.]* (?:or (?:newer|later|higher|above)|and above|\+) (?:is|are) required"
            r"|[Rr]equires (?:GCC|gcc|g\+\+) ?(?:>=|version|\d)|GCC version must be at least"
        ),
        examples=(
            "CMake Error at CMakeLists.txt:5 (message): GCC-9.3 or newer is required to compile PyTorch",
            "RuntimeError: this kernel requires g++ >= 9",
            "  GCC version must be at least 9.0!",
        ),
        not_examples=(
            "GCC 11.4.0 is used to compile",
            "gcc (Ubuntu 11.4.0-1ubuntu1~22.04) 11.4.0",
        ),
        weight=52,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        # a warning by itself; the cause where the build then fails and names nothing else
        anchor=("ABI incompatible with", "ABI-incompatible with"),
        pattern=r"may be ABI[- ]incompatible with",
        examples=(
            "Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",
            "Your compiler (c++) may be ABI incompatible with PyTorch.",
        ),
        not_examples=("the wheel is ABI incompatible with Python 3.12",),
        weight=42,
        requires=("Error building extension", "ninja: build stopped"),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        anchor=(
            "in namespace 'std'",
            "in namespace \u2018std\u2019",
            'has no member "',
            "is not a member of 'std'",
            "is not a member of \u2018std\u2019",
        ),
        pattern=(
            r"['\u2018](?:optional|string_view|variant|any|is_same_v|apply|conjunction\w*|void_t|filesystem|invoke_result\w*)['\u2019] (?:in namespace ['\u2018]std['\u2019] does not name|is not a member of ['\u2018]std['\u2019])"
            r"|namespace \x22std\x22 has no member \x22(?:optional|string_view|variant|any|is_\w+_v|apply|conjunction\w*|void_t|filesystem|invoke_result\w*|enable_if_t|index_sequence)\x22"
        ),
        examples=(
            "error: 'optional' in namespace 'std' does not name a template type",
            'error: namespace "std" has no member "is_same_v"',
            "error: 'string_view' is not a member of 'std'",
        ),
        not_examples=(
            'error: namespace "std" has no member "my_sort"',
            "error: 'vecter' is not a member of 'std'",
        ),
        weight=48,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        anchor=("internal compiler error: in ",),
        pattern=r"\.(?:cu|cuh|h|hpp|cpp|cc|cxx):\d{1,6}:\d{1,6}: internal compiler error: in \w",
        examples=(
            "k.cu:62:385: internal compiler error: in maybe_undo_parenthesized_ref, at cp/semantics.c:1740",
            "/x/variant.hpp:2243:9: internal compiler error: in tsubst_copy, at cp/pt.c:15500",
        ),
        not_examples=("rustc: internal compiler error: in trait selection",),
        weight=46,
        masks=("cpu-adam-unbuilt",),
    ),
)
