"""The installed torch is a CPU build, on a machine with a GPU.

## Why it matters
`torch.cuda.is_available()` is false whatever the driver says, and DeepSpeed takes the CPU as its
accelerator after one line of warning.

## What to do
Install a CUDA build from an index that fits the driver. CPU builds come from the index `whl/cpu`,
from conda where the GPU was not seen at install, and from wheels for Windows on PyPI.

## References
- https://pytorch.org/get-started/locally/
- torch/version.py: `cuda`
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Missing,
    NvidiaKernel,
    Nvml,
    RunNeeds,
    Scope,
    TorchBuild,
    check,
    fail,
    ok,
    skip,
)
from dsdoctor_checks._util import gpu_expected

CONDITION = Condition(
    "cpu-only-torch",
    id="DSD302",
    scope=Scope.USER_ENV,
    since="0.1",
    fixes=("install-torch-build",),
    leads_to=("no-gpu-visible",),
)


@check(CONDITION)
def torch_has_cuda(
    torch: TorchBuild,
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    nvml: Nvml | Missing,
    env: Environment | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """A failure only where a GPU is there or asked for."""
    if torch.version is None:
        yield skip("torch is not installed")
        return
    if torch.cuda is not None or torch.hip is not None:
        yield ok(torch=torch.version, cuda=torch.cuda, hip=torch.hip)
        return
    if not gpu_expected(run, kernel, gpus, env):
        yield skip(f"torch {torch.version} is a CPU build, and no GPU is here or asked for")
        return
    found = [gpu.name for gpu in gpus.gpus] if isinstance(gpus, Gpus) else []
    driver = nvml.driver_version if isinstance(nvml, Nvml) else None
    there = f"this machine has {len(found)} × {found[0]}" if found else "a GPU is here or asked for"
    yield fail(
        f"torch {torch.version} is a CPU build, but {there}",
        effect="no GPU is used: DeepSpeed runs on the CPU",
        hint="install a CUDA build, such as"
        " `pip install --force-reinstall torch --index-url https://download.pytorch.org/whl/cu126`",
        torch=torch.version,
        gpus=found,
        count=len(found),
        driver=driver,
        asked_for=list(run.gpus),
        expect_gpus=run.expect_gpus,
    )
