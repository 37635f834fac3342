"""NVML, the driver's management library, does not work.

## Why it matters
`nvidia-smi`, NCCL, schedulers and DeepSpeed's own GPU detection ask NVML. Where it gives an
error or does not answer, the driver is damaged, access is denied, or the library was left out
of a container.

## What to do
Look at `dmesg` for messages of `NVRM`. In a container add `utility` to
`NVIDIA_DRIVER_CAPABILITIES` and give it the GPUs with `--gpus all`. If it hangs, reset the GPU
or restart the machine.

## References
- nvml.h, `nvmlReturn_t`
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/
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
    OsInfo,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._util import cuda_works, gpu_expected, gpus_hidden
from dsdoctor_checks.driver import _tables

CONDITION = Condition(
    "nvml-unusable",
    id="DSD107",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "driver-missing",
        "driver-library-mismatch",
        "container-lost-gpu",
        "gpu-lost",
    ),
)
_ABSENCE = (_tables.NVML_DRIVER_NOT_LOADED, _tables.NVML_LIBRARY_NOT_FOUND)


@check(CONDITION)
def nvml_answers(
    nvml: Nvml | Missing,
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    os: OsInfo | Missing,
    env: Environment | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
) -> Iterator[Finding]:
    """An error or a hang of NVML; its absence is no fault where there is no GPU."""
    say = warn if cuda_works(live) else fail
    effect = (
        "CUDA works, but `nvidia-smi` and health checks do not"
        if cuda_works(live)
        else "`nvidia-smi` does not work, and CUDA is unlikely to start"
    )
    if isinstance(nvml, Missing):
        if nvml.is_unknown:
            yield say(
                f"NVML gives no answer: {nvml.detail}",
                effect=effect,
                hint="look for `Xid` and `NVRM` in `dmesg`, then restart the machine",
                why=nvml.why.value,
            )
        else:
            yield skip(nvml.detail)
        return
    stopped = gpus.stopped_at if isinstance(gpus, Gpus) else None
    error = nvml.error
    if error is None and stopped is None:
        return
    if error is None:
        yield say(
            f"NVML hung or crashed at `{stopped}`",
            effect=effect,
            hint="look for `Xid` and `NVRM` in `dmesg`, then reset the GPU or restart the machine",
            stopped_at=stopped,
        )
        return
    if error.code is None:
        yield skip(f"dsdoctor could not load its NVML binding: {error.message}", call=error.call)
        return
    if error.code == _tables.NVML_VERSION_MISMATCH:
        return
    there = gpu_expected(RunNeeds(), kernel, gpus, live=live)
    if error.code in _ABSENCE and (not there or gpus_hidden(os, kernel, env)):
        yield skip("no NVIDIA GPU is given to this machine or job", code=error.code)
        return
    in_container = isinstance(os, OsInfo) and os.container is not None
    lacking = error.code == _tables.NVML_LIBRARY_NOT_FOUND
    yield say(
        f"NVML ends with error {error.code} ({error.name}) in `{error.call}`",
        effect=effect,
        hint="add `utility` to `NVIDIA_DRIVER_CAPABILITIES` and start the container anew"
        if lacking and in_container
        else "look for `NVRM` in `dmesg`, then reinstall the driver or restart the machine",
        code=error.code,
        name=error.name,
        text=error.message,
        call=error.call,
        asked=run.wants_gpu,
    )
