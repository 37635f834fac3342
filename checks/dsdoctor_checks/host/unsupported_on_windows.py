"""DeepSpeed does not support this feature on Windows.

## Why it matters
On Windows there is no NCCL and no `async_io`, and DeepSpeed's ops must be built in advance.

## What to do
Use WSL 2 or Linux, or install a prebuilt wheel.

## References
- torch.distributed: backends (NCCL is built only for Linux)
- DeepSpeed: blogs/windows/08-2024, features of the Windows build
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
    check,
    fail,
    ok,
    skip,
)

from . import _unsupported_on_windows_signatures
from ._util import ranks

CONDITION = Condition(
    "unsupported-on-windows",
    id="DSD1051",
    scope=Scope.NODE,
    since="0.1",
    formerly=("windows-unsupported",),
)

_PARTS = ("offload_optimizer", "offload_param")


@check(CONDITION)
def windows_can_do_it(
    os: OsInfo, run: RunNeeds, gpus: Gpus | Missing, env: Environment | Missing
) -> Iterator[Finding]:
    """Compares the run with what Windows supports: one GPU, without NVMe offload."""
    if os.system != "Windows":
        yield skip("not Windows")
        return
    count = ranks(run, gpus, env)
    zero = (run.config or {}).get("zero_optimization")
    sections = [zero.get(part) for part in _PARTS] if isinstance(zero, dict) else []
    nvme = any(isinstance(s, dict) and s.get("device") == "nvme" for s in sections)
    stated = bool(run.command) or run.wants_gpu
    if count > 1 and stated:
        yield fail(
            f"the run has {count} GPUs, but torch has no NCCL on Windows",
            effect="`init_process_group` fails, or gloo copies every gradient through the CPU",
            hint="use one GPU (`--gpus 0`), or use WSL 2",
            ranks=count,
        )
    if nvme:
        yield fail(
            "the config offloads to NVMe, but `async_io` is not built on Windows",
            effect="the run stops when it loads the op",
            hint="offload to `cpu`, or use WSL 2",
            nvme=True,
        )
    if count > 1 and not stated:
        yield skip(f"how many of the {count} GPUs a run uses is not stated", ranks=count)
    elif count == 1 and not nvme:
        yield ok(ranks=count)


HINT = "use WSL 2 or Linux, or install a prebuilt wheel"

SIGNATURES = _unsupported_on_windows_signatures.SIGNATURES
