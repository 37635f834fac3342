"""How `jit-build-compiler-missing` words itself in logs."""

from __future__ import annotations

from dsdoctor.api import Signature

CONDITION_NAME = "jit-build-compiler-missing"
TITLE = "no usable C or C++ compiler"
HINT = "install gcc and g++ (`build-essential`, `gcc-c++`), or set `CC` and `CXX`"
FIXES: tuple[str, ...] = ("install-compiler",)

SIGNATURES = (
    Signature(
        anchor=(
            "'c++'",
            "c++: not found",
            "c++: command not found",
            "g++: not found",
            "g++: command not found",
            "g++'",
            "gcc'",
            "gcc: not found",
            "gcc: command not found",
            "cc1plus",
            "cc1",
            "Failed to find C compiler",
            "No working C++ compiler",
            "InvalidCxxCompiler",
            "x86_64-linux-gnu-gcc",
            "cl.exe",
            "'cl'",
            "which: no c++",
            "'clang++'",
            "cc1plus'",
            "c++'",
        ),
        pattern=(
            r"'which', 'c\+\+'|(?:\bc\+\+|g\+\+|gcc|clang\+\+|\bcc)(?:-\d+)?['\x22]?: (?:command )?not found"
            r"|(?:No such file or directory|Errno 2\]).{0,30}(?:c\+\+|g\+\+"
            r"|gcc|clang\+\+|\bcc)'|cannot execute .?cc1(?:plus)?|error trying to exec .?cc1"
            r"|Failed to find C compiler|No working C\+\+ compiler|InvalidCxxCompiler"
            r"|command '\S*gcc' failed: No such|unable to execute '\S*(?:gcc"
            r"|g\+\+)'|which: no (?:c|g)\+\+|Error checking compiler version for (?:c"
            r"|g|cl)"
        ),
        examples=(
            "/bin/sh: 1: c++: not found",
            "RuntimeError: Failed to find C compiler. Please specify via CC environment variable.",
            "g++: fatal error: cannot execute 'cc1plus': execvp: No such file or directory",
        ),
        not_examples=("gcc (Debian) 12.2.0 found: '/usr/bin/gcc'",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
        not_near=("cl.exe",),
    ),
    Signature(
        anchor=": not found",
        pattern=(
            r"(?:^|/)sh: (?:\d+: |line \d+: )?\S*(?:g\+\+|gcc|c\+\+|clang)\S*: (?:not found"
            r"|No such file)"
        ),
        examples=("/bin/sh: 1: /opt/x/bin/g++-13: not found",),
        not_examples=("sh: 1: foo: not found",),
        weight=66,
        masks=("cpu-adam-unbuilt", "jit-build-stale-lock", "nccl-timeout-watchdog"),
    ),
)
