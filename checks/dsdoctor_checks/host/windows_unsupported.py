"""This DeepSpeed feature or build is not to be had on Windows.

## Why it matters
On Windows DeepSpeed has no NCCL and no async_io, and its ops must be built beforehand.

## What to do
Use WSL2 or Linux, or a prebuilt wheel.

## References
- torch.distributed: backends (NCCL is built for Linux alone)
- DeepSpeed: blogs/windows/08-2024, features that its Windows build has
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    OsInfo,
    RunNeeds,
    Scope,
    Signature,
    check,
    fail,
    ok,
    skip,
)

from ._util import ranks

CONDITION = Condition("windows-unsupported", id="DSD1051", scope=Scope.NODE, since="0.1")

_PARTS = ("offload_optimizer", "offload_param")


@check(CONDITION)
def windows_can_do_it(
    os: OsInfo, run: RunNeeds, gpus: Gpus | Missing, env: Environment | Missing
) -> Iterator[Finding]:
    """What the run asks for against what there is on Windows: one GPU works, without NVMe."""
    if os.system != "Windows":
        yield skip("not Windows")
        return
    count = ranks(run, gpus, env)
    zero = (run.config or {}).get("zero_optimization")
    sections = [zero.get(part) for part in _PARTS] if isinstance(zero, dict) else []
    nvme = any(isinstance(s, dict) and s.get("device") == "nvme" for s in sections)
    if count > 1:
        yield fail(
            f"the run has {count} GPUs, but torch has no NCCL on Windows",
            effect="`init_process_group` ends with an error, or gloo moves every gradient by the CPU",
            hint="choose one GPU (`--gpus 0`), or use WSL 2",
            ranks=count,
        )
    if nvme:
        yield fail(
            "the config offloads to NVMe, but `async_io` is not built on Windows",
            effect="the run ends when it loads the op",
            hint="offload to `cpu`, or use WSL 2",
            nvme=True,
        )
    if count == 1 and not nvme:
        yield ok(ranks=count)


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
