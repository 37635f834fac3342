"""This DeepSpeed feature or build is not to be had on Windows.

## Why it matters
On Windows DeepSpeed has no NCCL and no async_io, and its ops must be built beforehand.

## What to do
Use WSL2 or Linux, or a prebuilt wheel.

## References
Recognised in logs alone; the wordings are tested in `tests/logs`.
"""

from __future__ import annotations

from dsdoctor.api import Condition, Scope, Signature

CONDITION = Condition("windows-unsupported", id="DSD1051", scope=Scope.NODE, since="0.1")

HINT = "use WSL2 or Linux, or a prebuilt wheel"

SIGNATURES = (
    Signature(
        anchor=(
            "symbolic link privilege",
            "libuv",
            "async_io",
            "WinError",
            "have NCCL built in",
            "MSVC",
            "cl.exe",
            "Visual C++",
            "fork",
        ),
        pattern=(
            r"symbolic link privilege|not built with libuv|WinError 1314"
            r"|have NCCL built in|Microsoft Visual C\+\+ .{0,20}(?:is )?required"
            r"|'cl'.{0,40}(?:not recognized|non-zero)|No such file or directory: 'cl'"
            r"|\['where', 'cl'\]"
        ),
        examples=(
            "OSError: symbolic link privilege not held",
            "RuntimeError: use_libuv was requested but PyTorch was not built with libuv support",
        ),
        not_examples=("libuv ok",),
        weight=70,
        requires=(
            "Windows",
            "win32",
            ":\\",
            "WinError",
            "symbolic link privilege",
            "libuv",
            "cl.exe",
            "Visual C++",
            "'cl'",
        ),
    ),
    Signature(
        anchor="Unable to pre-compile async_io",
        pattern=r"Unable to pre-compile async_io",
        examples=("AssertionError: Unable to pre-compile async_io",),
        not_examples=("async_io",),
        weight=72,
        requires=("C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32"),
        masks=("libaio-missing",),
    ),
)
