"""The host compiler is too old for the headers of this torch.

## Why it matters
Extensions include torch's headers, which require gcc 9 since torch 2.2.2 and C++20 (gcc 10) since 2.12.
An older gcc fails in those headers, whatever the op.

## What to do
Install a newer compiler and set `CC` and `CXX` to it.

## References
- c10/util/C++17.h; https://github.com/pytorch/pytorch/pull/120126 (gcc 9)
- torch/utils/cpp_extension.py: the `-std=` that it passes
- DeepSpeed op_builder/builder.py: `cxx_args`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Compilers,
    Condition,
    DeepSpeedInstall,
    DeepSpeedLive,
    ExtensionCache,
    Finding,
    Level,
    Missing,
    RunNeeds,
    Scope,
    Signature,
    TorchBuild,
    check,
    ok,
    skip,
)
from dsdoctor_checks._util import numbers

from ._tables import CXX17_GCC, STANDARDS
from ._util import jit_ops, tool_unusable

CONDITION = Condition(
    "jit-build-gcc-too-old",
    id="DSD404",
    scope=Scope.NODE,
    since="0.1",
    fixes=("install-compiler",),
)


@check(CONDITION)
def torch_accepts_compiler(
    compilers: Compilers,
    torch: TorchBuild,
    run: RunNeeds,
    deepspeed: DeepSpeedInstall | Missing,
    cache: ExtensionCache | Missing,
    own: DeepSpeedLive | Missing,
) -> Iterator[Finding]:
    """Compares gcc with the minimum of torch's headers."""
    compiler = compilers.cxx
    release = numbers(torch.version)
    if compiler.kind != "gcc" or compiler.major is None or not release:
        yield skip("the minimum is known only for gcc and for a torch that reports its version")
        return
    row = next((row for row in STANDARDS if release >= numbers(row[0])), None)
    if row is None:
        yield skip(f"torch {torch.version} is older than the table", torch=torch.version)
        return
    _, standard, oldest = row
    evidence: dict[str, Any] = {
        "compiler": compiler.command,
        "compiler_version": compiler.version,
        "torch": torch.version,
        "standard": standard,
        "oldest_that_serves": oldest,
        "source": "table",
    }
    ops = jit_ops(run, deepspeed, cache, own)
    if compiler.major >= oldest or ops == ():
        if compiler.major < CXX17_GCC and standard == "C++17" and ops != ():
            yield skip(
                f"the headers of torch {torch.version} accept gcc {compiler.version}, but it does "
                f"not implement all of C++17",
                **evidence,
            )
            return
        yield ok(**evidence)
        return
    yield tool_unusable(
        ops,
        f"`{compiler.command}` is gcc {compiler.version}, but the headers of torch {torch.version} "
        f"({standard}) need gcc {oldest} or newer",
        effect="every build of an op fails with errors inside torch's headers",
        hint=f"install gcc {oldest} or newer and run `export CC=gcc-{oldest} CXX=g++-{oldest}`",
        **evidence,
    )


HINT = "install gcc 10 or newer (9 before torch 2.12) and set `CC` and `CXX` to it"

SIGNATURES = (
    Signature(
        pattern=r"You need C\+\+1[47]",
        source="torch 1.5-2.13 include/torch/csrc/api/include/torch/all.h, c10/util/C++17.h",
        examples=("error: #error You need C++14 to compile PyTorch",),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        pattern=r"You need (?:GCC|a C\+\+)",
        source="torch 1.5-2.13 CMakeLists.txt, include/c10/util/C++17.h",
        examples=(
            "You need GCC",
            "You need a C++",
        ),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        pattern=r"GCC \d+ or later",
        source="torch 1.13-2.13 include/c10/util/C++17.h",
        examples=(
            '/opt/env/lib/python3.10/site-packages/torch/include/c10/util/C++17.h:16:2: error: #error "You\'re trying to build PyTorch with a too old version of GCC. We need GCC 9 or later."',
        ),
        not_examples=(
            '/opt/env/lib/python3.10/site-packages/torch/include/c10/util/C++17.h:13:2: error: #error "C++17 or later compatible compiler is required to use ATen."',
        ),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        pattern="is less than the minimum required version",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "RuntimeError: The current installed version of g++ (4.8.5) is less than the minimum required version by CUDA 11.8 (6.0.0). Please make sure to use an adequate version of g++ (>=6.0.0, <12.0).",
        ),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        pattern=r"unrecognized command[- ]line option .?-std=c\+\+(?:14|17|20|2a)",
        source="gcc 12.2.0 cc1plus, x86_64-linux-gnu-gcc-12",
        examples=(
            "error: unrecognized command line option '-std=c++17'",
            "unrecognized command-line option -std=c++14",
            "unrecognized command-line option -std=c++20",
            "unrecognized command-line option -std=c++2a",
        ),
        not_examples=("unrecognized command line option '-Wno-x'",),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
        ),
    ),
    Signature(
        pattern=r"C\+\+17 or later compatible compiler",
        source="torch 2.13.0 include/ATen/ATen.h, include/torch/csrc/api/include/torch/all.h",
        examples=(
            "#error C++17 or later compatible compiler is required",
            "#error C++17 or later compatible compiler is required to use PyTorch.",
        ),
        level=Level.CERTAIN,
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
        pattern="may be ABI[- ]incompatible with",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",
            "Your compiler (c++) may be ABI incompatible with PyTorch.",
        ),
        level=Level.HINT,
    ),
    Signature(
        pattern=r"fatal error: (?:optional|string_view|variant|any|filesystem|charconv|concepts|span|ranges|bit|source_location|memory_resource): No such file|unsupported GNU version! gcc (?:versions? )?(?:earlier|older|\d[\d.]* (?:and|or) (?:up|newer|later))|invalid value 'c\+\+(?:17|20|2a)' in '-std",
        source=(
            "gcc 4.8-14 libcpp/files.cc; CUDA toolkit 7-13 include/crt/host_config.h; clang 3-19"
        ),
        examples=(
            "c10/util/Optional.h:4:10: fatal error: optional: No such file or directory",
            "c10/util/strides.h:3:10: fatal error: concepts: No such file or directory",
            "error: invalid value 'c++20' in '-std=c++20'",
            "unsupported GNU version! gcc earlier",
        ),
        not_examples=(
            "#error -- unsupported GNU version! gcc versions later than 11 are not supported!",
        ),
        level=Level.STRONG,
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "deepspeed-torch-incompatible",
            "jit-build-gcc-too-new",
        ),
    ),
    Signature(
        pattern=r"-std=c\+\+\d\w flag is not supported with the configured host compiler",
        source="nvcc 9-13",
        examples=(
            "nvcc warning : The -std=c++17 flag is not supported with the configured host compiler. Flag will be ignored.",
        ),
        not_examples=(" flag is not supported with the configured host compiler ",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern="STL1000: Unexpected compiler version",
        source="MSVC 19 STL yvals_core.h",
        examples=("STL1000: Unexpected compiler version",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern=r"library support for the ISO C\+\+ 20",
        source="libstdc++ 4.8-14 bits/c++0x_warning.h",
        examples=("library support for the ISO C++ 20",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern="Error: no such instruction: ",
        source="binutils 2.20-2.44 gas/config/tc-i386.c",
        examples=("/tmp/ccX.s:120: Error: no such instruction: `vmovdqu64 %zmm0,(%rax)'",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern=r"bad value \(.{1,30}\) for .{0,3}-march=",
        source="gcc 4.8-14 gcc/config/i386/i386-options.c",
        examples=("cc1plus: error: bad value ('tigerlake') for '-march=' switch",),
        not_examples=("cc1plus: error: bad value ('tigerlake') for",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern=r"C\+\+ versions less than C\+\+1\d are not supported",
        source="abseil 2021-2025 absl/base/policy_checks.h",
        examples=("#error C++ versions less than C++14 are not supported.",),
        not_examples=("#error C++ versions less than C++14 are not",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern=r"#error.{0,40}requires at least C\+\+",
        source="torch 2.13.0 include/google/protobuf/stubs/port.h",
        examples=("#error ... requires at least C++",),
        not_examples=("... requires at least C++",),
        masks=(
            "cpu-adam-unbuilt",
            "jit-build-stale-lock",
            "nccl-timeout-watchdog",
            "jit-build-compiler-missing",
        ),
    ),
    Signature(
        pattern=r"(?:GCC|gcc|g\+\+)[- ](?:version )?\d[\d.]* (?:or (?:newer|later|higher|above)|and above|\+) (?:is|are) required|[Rr]equires (?:GCC|gcc|g\+\+) ?(?:>=|version|\d)|GCC version must be at least",
        source="torch 2.1-2.13 CMakeLists.txt",
        examples=(
            "CMake Error at CMakeLists.txt:5 (message): GCC-9.3 or newer is required to compile PyTorch",
            "RuntimeError: this kernel requires g++ >= 9",
            "  GCC version must be at least 9.0!",
        ),
        not_examples=("RuntimeError: this kernel requires g++",),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    # only a warning, but the cause if the build then fails and names nothing else
    Signature(
        pattern="may be ABI[- ]incompatible with",
        source="torch 2.13.0 utils/cpp_extension.py",
        examples=(
            "Your compiler (g++ 4.8.5) may be ABI-incompatible with PyTorch!",
            "Your compiler (c++) may be ABI incompatible with PyTorch.",
        ),
        level=Level.WEAK,
        requires=("Error building extension", "ninja: build stopped"),
        masks=("cpu-adam-unbuilt",),
    ),
    Signature(
        pattern=r"['\u2018](?:optional|string_view|variant|any|is_same_v|apply|conjunction\w*|void_t|filesystem|invoke_result\w*)['\u2019] (?:in namespace ['\u2018]std['\u2019] does not name|is not a member of ['\u2018]std['\u2019])",
        source="gcc 4.8-14 cp/name-lookup.cc, cp/parser.cc",
        examples=(
            "error: 'optional' in namespace 'std' does not name a template type",
            "error: 'string_view' is not a member of 'std'",
            "'variant' in namespace 'std' does not name",
            "'any' in namespace 'std' does not name",
            "'is_same_v' in namespace 'std' does not name",
            "'apply' in namespace 'std' does not name",
            "'conjunctionname' in namespace 'std' does not name",
            "'void_t' in namespace 'std' does not name",
            "'filesystem' in namespace 'std' does not name",
            "'invoke_resultname' in namespace 'std' does not name",
        ),
        not_examples=("error: 'vecter' is not a member of 'std'",),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        pattern=r"namespace \x22std\x22 has no member \x22(?:optional|string_view|variant|any|is_\w+_v|apply|conjunction\w*|void_t|filesystem|invoke_result\w*|enable_if_t|index_sequence)\x22",
        source="nvcc 10-13 cudafe++ (EDG)",
        examples=(
            'error: namespace "std" has no member "is_same_v"',
            'namespace "std" has no member "optional"',
            'namespace "std" has no member "string_view"',
            'namespace "std" has no member "variant"',
            'namespace "std" has no member "any"',
            'namespace "std" has no member "apply"',
            'namespace "std" has no member "conjunctionname"',
            'namespace "std" has no member "void_t"',
            'namespace "std" has no member "filesystem"',
            'namespace "std" has no member "invoke_resultname"',
            'namespace "std" has no member "enable_if_t"',
            'namespace "std" has no member "index_sequence"',
        ),
        not_examples=('error: namespace "std" has no member "my_sort"',),
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock"),
    ),
    Signature(
        pattern=r"\.(?:cu|cuh|h|hpp|cpp|cc|cxx):\d{1,6}:\d{1,6}: internal compiler error: in \w",
        source="gcc 4.8-14 gcc/diagnostic.cc",
        examples=(
            "k.cu:62:385: internal compiler error: in maybe_undo_parenthesized_ref, at cp/semantics.c:1740",
            "/x/variant.hpp:2243:9: internal compiler error: in tsubst_copy, at cp/pt.c:15500",
            ".cuh:7:7: internal compiler error: in n",
            ".h:7:7: internal compiler error: in n",
            ".cpp:7:7: internal compiler error: in n",
            ".cc:7:7: internal compiler error: in n",
            ".cxx:7:7: internal compiler error: in n",
        ),
        not_examples=("rustc: internal compiler error: in trait selection",),
        level=Level.WEAK,
        masks=("cpu-adam-unbuilt",),
    ),
)
