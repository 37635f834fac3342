"""NVML, the driver's management library, does not work.

## Why it matters
`nvidia-smi`, NCCL, schedulers and DeepSpeed's own GPU detection call NVML. If it returns an error or
hangs, the driver is damaged, access is denied, or the library is missing from the container.

## What to do
Look for `NVRM` messages in `dmesg`. In a container, add `utility` to `NVIDIA_DRIVER_CAPABILITIES`
and start it with `--gpus all`. If NVML hangs, reset the GPU or reboot.

## References
- nvml.h, `nvmlReturn_t`
- https://docs.nvidia.com/datacenter/cloud-native/container-toolkit/
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    GpuTopology,
    LaunchCommand,
    Missing,
    NotStated,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    Why,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._util import (
    cuda_works,
    driver_loaded,
    gpu_expected,
    gpus_hidden,
    is_jetson,
    other_accelerator,
    stated_for_cpu,
)
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
        "docker-gpu-runtime-missing",
        "wsl-driver-unavailable",
    ),
    blinds=(Gpus, GpuTopology),
)
_NO_GPU = "no NVIDIA GPU is assigned to this machine or job"
_ABSENCE = (_tables.NVML_DRIVER_NOT_LOADED, _tables.NVML_LIBRARY_NOT_FOUND)


def _shows_module(kernel: NvidiaKernel | Missing) -> bool:
    """Whether the kernel module is loaded all the same, as far as that is known."""
    try:
        return driver_loaded(kernel)
    except NotStated:  # a paste
        return False


@check(CONDITION)
def nvml_answers(
    nvml: Nvml | Missing,
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    os: OsInfo | Missing,
    env: Environment | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """An error or a hang of NVML; without an NVIDIA GPU, its absence is expected."""
    say = warn if cuda_works(live) else fail
    effect = (
        "CUDA works, but `nvidia-smi` and health checks do not"
        if cuda_works(live)
        else "`nvidia-smi` does not work, and CUDA is unlikely to start"
    )
    if isinstance(nvml, Missing):
        if nvml.is_unknown:
            yield say(
                f"NVML does not answer: {nvml.detail}",
                effect=effect,
                hint="look for `Xid` and `NVRM` in `dmesg`, then reboot",
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
            hint="look for `Xid` and `NVRM` in `dmesg`, then reset the GPU or reboot",
            stopped_at=stopped,
        )
        return
    if error.code is None:
        yield skip(f"dsdoctor could not load its NVML binding: {error.message}", call=error.call)
        return
    if error.code == _tables.NVML_VERSION_MISMATCH:
        return
    other = other_accelerator(torch, deepspeed, packages, env)
    # a ROCm build of torch lists AMD GPUs as CUDA devices, which NVML does not know
    there = gpu_expected(RunNeeds(), kernel, gpus, live=None if other else live)
    unasked = isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED
    if unasked and isinstance(kernel, Missing) and other is None:
        there = (
            True  # GPUs were not looked for; anyone who pastes a failing `nvidia-smi` expects one
        )
    if error.code == _tables.NVML_LIBRARY_NOT_FOUND and is_jetson(os):
        yield skip("a Jetson has no NVML before JetPack 6", code=error.code)
        return
    if error.code in _ABSENCE and (not there or gpus_hidden(os, kernel, env)):
        reason = f"DeepSpeed uses {other} here, not an NVIDIA GPU" if other else _NO_GPU
        yield skip(reason, code=error.code)
        return
    if error.code in _ABSENCE and stated_for_cpu(run, env, command):
        yield skip("the job is set to use the CPU", code=error.code)
        return
    in_container = isinstance(os, OsInfo) and os.container is not None
    lacking = error.code == _tables.NVML_LIBRARY_NOT_FOUND
    unloaded = error.code == _tables.NVML_DRIVER_NOT_LOADED
    in_wsl = isinstance(os, OsInfo) and os.wsl
    yield say(
        f"NVML returns error {error.code} ({error.name}) from `{error.call}`",
        effect=effect,
        hint="add `utility` to `NVIDIA_DRIVER_CAPABILITIES` and restart the container"
        if lacking and in_container
        else "compare `ls -l /dev/nvidia*` with the account of the job (`id`); in a container, pass the "
        "devices with `--gpus all`"
        if error.code == _tables.NVML_NO_PERMISSION
        else "update the NVIDIA driver of Windows, run `wsl --update` and `wsl --shutdown` there, and "
        "install no driver inside WSL"
        if in_wsl and (unloaded or lacking)
        else "find out why the kernel module is not loaded: `dkms status`, `dmesg | grep -i nvidia` "
        "(after a new kernel it may not be built for it); if there is none, install the driver"
        if unloaded
        else "in a container, restart it, since it may have lost its access to the GPUs; else look for "
        "`NVRM` in `dmesg`, then reboot"
        if error.code == _tables.NVML_UNKNOWN
        else "look for `NVRM` in `dmesg`, then reboot; if the error remains, reinstall the driver",
        code=error.code,
        name=error.name,
        text=error.message,
        error_text=f"Failed to initialize NVML: {error.message}"
        if unloaded and not (in_wsl or in_container or _shows_module(kernel))
        else "",
        call=error.call,
        asked=run.wants_gpu,
    )
