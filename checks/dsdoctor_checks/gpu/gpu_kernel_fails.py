"""A small CUDA kernel fails on a GPU, or returns wrong results.

## Why it matters
A GPU that NVML reports as healthy may still be unable to run code: it has an uncorrected fault, torch
has no code for it, or it hangs at its first kernel. Wrong results without an error are the worst
case, because training continues on them.

## What to do
Run `dsdoctor check --deep --gpus N` on this GPU alone. If it fails again, exclude the GPU from the
run, look for Xids (`dmesg | grep -i xid`), and report it to the node's administrator.

## References
- `dsdoctor check --deep`: an integer sum and a matrix product with known results
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DeepTrial, Finding, Scope, check, fail, ok, skip

CONDITION = Condition("gpu-kernel-fails", id="DSD640", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def kernels_run(trial: DeepTrial) -> Iterator[Finding]:
    """Judges the trial kernel on each GPU."""
    tried = [gpu for gpu in trial.gpus if gpu.kernel_ok is not None]
    if not tried:
        yield skip("no kernel ran on any GPU")
        return
    bad = [gpu for gpu in tried if gpu.kernel_ok is False]
    for gpu in bad:
        yield fail(
            f"a small kernel on GPU {gpu.name} fails: {gpu.kernel_error}",
            effect="every rank on this GPU crashes, hangs or computes wrong results",
            hint="install a build of torch that has code for this GPU"
            if "no kernel image" in (gpu.kernel_error or "")
            else "start jobs on other GPUs, and look for Xids with `dmesg | grep -i xid`",
            gpu=gpu.name,
            error_text=gpu.kernel_error or "",
            hung=gpu.hung,
        )
    if not bad:
        yield ok(gpus=[gpu.name for gpu in tried])
