"""A small CUDA kernel fails on a GPU, or gives wrong figures.

## Why it matters
A GPU that NVML calls healthy can still be unable to run code: an uncorrected fault, a torch build
without code for it, a device that hangs at its first kernel. Wrong figures without an error are the
worst case: the run trains on them.

## What to do
Run `check --deep` again on this GPU alone (`--gpus N`). If it fails again, take it out of the run,
look for Xids (`dmesg | grep -i xid`), and hand it to whoever keeps the node.

## References
- `dsdoctor check --deep`: a sum of integers and a product of matrices with known results
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import Condition, DeepTrial, Finding, Scope, check, fail, ok, skip

CONDITION = Condition("gpu-kernel-fails", id="DSD640", scope=Scope.NODE, since="0.1")


@check(CONDITION)
def kernels_run(trial: DeepTrial) -> Iterator[Finding]:
    """The outcome of each GPU's kernel."""
    tried = [gpu for gpu in trial.gpus if gpu.kernel_ok is not None]
    if not tried:
        yield skip("no GPU on which a kernel could be tried")
        return
    bad = [gpu for gpu in tried if gpu.kernel_ok is False]
    for gpu in bad:
        yield fail(
            f"a small kernel on GPU {gpu.name} fails: {gpu.kernel_error}",
            effect="every rank on this GPU dies, hangs, or computes wrong figures",
            hint="leave it out with `--gpus`, and look for Xids with `dmesg | grep -i xid`",
            gpu=gpu.name,
            error_text=gpu.kernel_error or "",
            hung=gpu.hung,
        )
    if not bad:
        yield ok(gpus=[gpu.name for gpu in tried])
