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
            "'where'",
            "'cl']",
        ),
        pattern=(
            r"symbolic link privilege|(?:not built with|built without) libuv|WinError 1314"
            r"|have NCCL built in|Microsoft Visual C\+\+ .{0,20}(?:is )?required"
            r"|'cl'.{0,40}(?:not recognized|non-zero)|No such file or directory: 'cl'"
            r"|\['where', 'cl'\]"
        ),
        examples=(
            "OSError: symbolic link privilege not held",
            "torch.distributed.DistStoreError: use_libuv was requested but PyTorch was built without libuv support",
            "subprocess.CalledProcessError: Command '['where', 'cl']' returned non-zero exit status 1.",
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
    Signature(
        anchor=(
            "LNK1181",
            "LNK1104",
            "WinError 2]",
            "WinError 3]",
            "No module named 'fcntl'",
            "No module named 'resource'",
            "No module named 'termios'",
            "No module named 'grp'",
            "No module named 'pwd'",
            "has no attribute 'SIGKILL'",
            "has no attribute 'getuid'",
            "has no attribute 'killpg'",
            "has no attribute 'setsid'",
            "recognized as an internal or external command",
            "distribution found for triton",
            "have NCCL built in",
            "error C",
        ),
        pattern="fatal error LNK1(?:181|104): cannot open (?:input )?file '(?:aio|cublas|curand|cuda\\w*|libaio|c10\\w*|torch\\w*)|\\[WinError [23]\\] The system cannot find the (?:file|path)|No module named '(?:fcntl|resource|termios|grp|pwd)'|has no attribute '(?:SIGKILL|SIGUSR1|getuid|killpg|setsid)'|No matching distribution found for triton|have NCCL built in|'(?:bash|ls|which|deepspeed)' is not recognized as an internal|\\.(?:cpp|h|cu)\\(\\d+\\): error C\\d{4}",
        examples=(
            "LINK : fatal error LNK1181: cannot open input file 'aio.lib'",
            "FileNotFoundError: [WinError 2] The system cannot find the file specified",
            "ModuleNotFoundError: No module named 'fcntl'",
            "RuntimeError: Distributed package doesn't have NCCL built in",
        ),
        not_examples=(
            "ModuleNotFoundError: No module named 'deepspeed'",
            "FileNotFoundError: [Errno 2] No such file or directory: 'x'",
        ),
        weight=67,
        masks=("libaio-missing", "cpu-adam-unbuilt"),
        requires=("C:\\", "D:\\", "E:\\", "F:\\", "d:\\", "c:\\", "win32", "Windows"),
    ),
    Signature(
        anchor="system error: 10049",
        pattern="system error: 10049",
        examples=(
            "[W socket.cpp:663] [c10d] The client socket has failed to connect to [host.docker.internal]:29500 (system error: 10049 - x).",
            "[W socket.cpp:558] [c10d] The client socket has failed to connect to [pc]:29500 (system error: 10049 - y).",
        ),
        not_examples=("system error: 110",),
        weight=30,
    ),
)
