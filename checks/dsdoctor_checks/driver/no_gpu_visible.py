"""No GPU is visible to this job.

## Why it matters
DeepSpeed then uses the CPU after one warning line. A job that expects GPUs exits, or runs a hundred
times slower.

## What to do
On a machine without an NVIDIA GPU there is nothing to fix; if torch is built for the CPU, too, and
nothing asks for a GPU, nothing is reported. Otherwise check `CUDA_VISIBLE_DEVICES`
(empty or `-1` hides every GPU), start the container with `--gpus all`, request GPUs from the
scheduler (`--gres=gpu:N`), or look in `dmesg` for the reason why the driver does not list the GPU.

## References
- DeepSpeed accelerator/real_accelerator.py ("Setting accelerator to CPU")
- CUDA programming guide, environment variables
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    CudaToolkits,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Level,
    Missing,
    ModuleImports,
    NotStated,
    NvidiaKernel,
    Nvml,
    OsInfo,
    Packages,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    TracebackRule,
    Why,
    check,
    fail,
    skip,
    warn,
)
from dsdoctor_checks._amd import (
    ROCM_BUILD,
    amd_gpus,
    has_no_kfd,
    may_not_open,
    rocm_finds_none,
)
from dsdoctor_checks._util import (
    driver_answers,
    driver_loaded,
    failed_to_start,
    gpu_expected,
    gpus_hidden,
    is_jetson,
    job_environment,
    other_accelerator,
    stated_for_cpu,
    variable,
    visible_tokens,
)

from ..cluster._slurm import gpus_of_node, in_job  # noqa: TID252  # families of one pack share it
from . import _no_gpu_visible_signatures
from ._for_cpu import built_for_cpu, meant_for_cpu
from ._told_by_torch import could_not_start

CONDITION = Condition(
    "no-gpu-visible",
    id="DSD104",
    scope=Scope.JOB,
    since="0.1",
    narrower=(
        "driver-missing",
        "driver-library-mismatch",
        "nvml-unusable",
        "container-lost-gpu",
        "libcuda-unusable",
        "kernel-module-unsuitable",
        "gpu-lost",
        "docker-gpu-runtime-missing",
        "driver-too-old",
        "cpu-only-torch",
        "visible-devices-invalid",
        "mig-without-instance",
        "slurm-gpus-not-visible",
        "wsl-driver-unavailable",
    ),
)
_CPU = "the job exits at its first use of a GPU, or runs on the CPU"


@check(CONDITION)
def some_gpu_visible(
    gpus: Gpus | Missing,
    kernel: NvidiaKernel | Missing,
    env: Environment | Missing,
    os: OsInfo | Missing,
    live: TorchLive | Missing,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
    nvml: Nvml | Missing,
    toolkits: CudaToolkits | Missing,
    imports: ModuleImports | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Warns if there is no NVIDIA GPU; fails if there is one, or one was requested."""
    if isinstance(live, TorchLive) and live.devices:
        return
    if stated_for_cpu(run, env, command):
        yield skip("the job is set to use the CPU")
        return
    env = job_environment(env, command)
    say = fail if run.wants_gpu else warn
    evidence: dict[str, Any] = {
        "asked_for": list(run.gpus),
        "expect_gpus": run.expect_gpus,
        "cuda_visible_devices": variable(env, "CUDA_VISIBLE_DEVICES"),
    }
    there = isinstance(gpus, Gpus) and bool(gpus.gpus or gpus.count)
    if isinstance(gpus, Gpus) and there:
        if visible_tokens(env) == ():
            value = variable(env, "CUDA_VISIBLE_DEVICES")
            count = max(len(gpus.gpus), gpus.count or 0)
            yield say(
                f"`CUDA_VISIBLE_DEVICES={value}` hides every GPU of this machine ({count})",
                effect=_CPU,
                hint="unset `CUDA_VISIBLE_DEVICES`, or set it to the GPUs that the job should use",
                gpus=count,
                **evidence,
            )
        return
    if rocm_finds_none(torch, live):
        yield from _without_amd(os, kernel, say, evidence)
        return
    if isinstance(gpus, Missing) and gpus.is_unknown:
        yield skip(f"the GPUs could not be counted: {gpus.detail}", **evidence)
        return
    if isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED and isinstance(kernel, Missing):
        yield _of_unlisted(gpus, nvml, toolkits, live, evidence)
        return
    if _assigned_none(env, nvml):
        yield skip("Slurm assigned no GPU to this job")  # slurm-gpus-not-visible
        return
    if not gpu_expected(RunNeeds(), kernel, gpus):
        if _lacks_dxg(os, kernel) or _loads_no_npu(imports):
            # wsl-driver-unavailable, compiled-extension-broken
            yield skip("another condition reports why there is none")
        elif meant := meant_for_cpu(run, env, command, torch, kernel, os):
            yield skip(meant)
        else:
            other = other_accelerator(torch, deepspeed, packages, env)
            yield from (
                _on_jetson(live, say, evidence)
                if is_jetson(os)
                else _without_nvidia(other, os, kernel, torch, run, evidence)
            )
        return
    # counted one by one: of a paste, the list may be longer
    on_bus = sum(1 for _ in kernel.pci) if isinstance(kernel, NvidiaKernel) else 0
    if gpus_hidden(os, kernel, env):
        yield (fail if could_not_start(torch, live) else say)(
            f"none of the NVIDIA GPUs on the PCI bus ({on_bus}) is assigned to this container or job",
            effect=_CPU,
            hint="start the container with `--gpus all`, or request GPUs from the scheduler"
            " (`--gres=gpu:1`)",
            on_bus=on_bus,
            **evidence,
        )
        return
    if isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED and driver_loaded(kernel):
        yield skip(gpus.detail, on_bus=on_bus, **evidence)  # the driver was not asked
        return
    yield fail(
        f"the driver lists none of the NVIDIA GPUs on the PCI bus ({on_bus})",
        effect=_CPU,
        hint="look for the reason with `dmesg | grep -i -e nvrm -e nvidia`; after `RmInitAdapter failed`,"
        " enable Above 4G Decoding and Resizable BAR in the machine's firmware setup, and check the"
        " power cables",
        on_bus=on_bus,
        **evidence,
    )


def _of_unlisted(
    gpus: Missing,
    nvml: Nvml | Missing,
    toolkits: CudaToolkits | Missing,
    live: TorchLive | Missing,
    evidence: dict[str, Any],
) -> Finding:
    """What torch told of a machine whose GPUs nothing lists."""
    if driver_answers(nvml) and failed_to_start(live):
        return skip("another condition reports why CUDA does not start")
    meant = _meant_for_cuda(nvml, toolkits)
    if meant and isinstance(live, TorchLive) and live.cuda_ok is False:
        return warn(
            f"torch finds no CUDA device, although this machine has {meant}",
            effect=_CPU,
            hint="compare `nvidia-smi -L` with `CUDA_VISIBLE_DEVICES`; on a login node or without"
            " a GPU, this is expected",
            **evidence,
        )
    return skip(gpus.detail, **evidence)


def _on_jetson(
    live: TorchLive | Missing, say: Callable[..., Finding], evidence: dict[str, Any]
) -> Iterator[Finding]:
    """A Jetson always has a GPU; torch may not reach it."""
    if isinstance(live, TorchLive) and live.cuda_ok is False:
        yield say(
            f"torch does not reach the GPU of this Jetson: {live.cuda_error}",
            effect=_CPU,
            hint="install NVIDIA's torch build for this JetPack release, and in a container use its"
            " `--runtime nvidia`; compare `ls -l /dev/nvhost* /dev/nvmap` with the account's groups",
            **evidence,
        )
    else:
        yield skip("the GPU of a Jetson is part of its chip")


def _lacks_dxg(os: OsInfo | Missing, kernel: NvidiaKernel | Missing) -> bool:
    """Whether this is a WSL without the device through which it reaches the GPU."""
    try:
        return (
            isinstance(os, OsInfo)
            and os.wsl
            and isinstance(kernel, NvidiaKernel)
            and not kernel.dxg
        )
    except NotStated:
        return False


def _assigned_none(env: Environment | Missing, nvml: Nvml | Missing) -> bool:
    """Whether Slurm is known to have assigned no GPU of this node to this job."""
    if not isinstance(nvml, Nvml) or nvml.error is not None:
        return False
    try:
        return isinstance(env, Environment) and in_job(env) and (gpus_of_node(env) or (0,))[0] == 0
    except NotStated:  # a paste shows some variables only
        return False


_NO_ROCM: dict[str, Any] = {
    "message": "torch is built for ROCm, but finds no AMD GPU",
    "effect": _CPU,
    "hint": "compare `rocminfo`, and the groups of `ls -l /dev/kfd /dev/dri` (`render`, `video`) with those of"
    " the account; in a container, pass `--device /dev/kfd --device /dev/dri`",
}


def _without_amd(
    os: OsInfo | Missing,
    kernel: NvidiaKernel | Missing,
    say: Callable[..., Finding],
    evidence: dict[str, Any],
) -> Iterator[Finding]:
    """A build for ROCm that finds no GPU; where it is unknown why, `torch-cuda-init-failed` says so."""
    amd = amd_gpus(os, kernel)
    if not amd:
        yield say(**_NO_ROCM, **evidence)
    elif may_not_open(os):
        yield fail(**_NO_ACCESS, amd_gpus=amd, **evidence)
    elif has_no_kfd(os):
        yield fail(**_NO_KFD, amd_gpus=amd, **evidence)


_NO_KFD: dict[str, Any] = {
    "message": "this container has no `/dev/kfd`, through which ROCm reaches the AMD GPUs of the machine",
    "effect": _CPU,
    "hint": "start it with `--device /dev/kfd --device /dev/dri --group-add video` (Docker, Podman), or"
    " install the GPU plugin of AMD in the Kubernetes cluster and set `amd.com/gpu` in its limits",
}


_NO_ACCESS: dict[str, Any] = {
    "message": "this account may not open `/dev/kfd`, through which ROCm reaches the AMD GPUs",
    "effect": _CPU,
    "hint": "add the account to the group of `ls -l /dev/kfd` (`sudo usermod -aG render,video $USER`) and log"
    " in again; in a container, pass `--device /dev/kfd --device /dev/dri --group-add` with that group's number;"
    " on a cluster, request GPUs from the scheduler",
}


def _without_nvidia(
    other: str | None,
    os: OsInfo | Missing,
    kernel: NvidiaKernel | Missing,
    torch: TorchBuild | Missing,
    run: RunNeeds,
    evidence: dict[str, Any],
) -> Iterator[Finding]:
    """A machine without NVIDIA GPUs, which another accelerator may serve."""
    if other is None and isinstance(os, OsInfo) and os.system == "Darwin":
        other = "Apple MPS or the CPU"  # NVIDIA has no driver for macOS
    if other is not None and not run.wants_gpu:
        yield skip(f"DeepSpeed uses {other} here, not an NVIDIA GPU", accelerator=other)
        return
    amd = amd_gpus(os, kernel)
    if not (amd and built_for_cpu(torch)):  # which `cpu-only-torch` reports
        where = _no_gpu_here(amd, run, listed=isinstance(kernel, NvidiaKernel))
        if run.gpu_needed_by and not (amd or run.wants_gpu):
            where |= {
                "message": f"no NVIDIA GPU on this machine, but {run.gpu_needed_by} needs one",
                "effect": "every rank stops at startup",
            }
        yield (fail if run.wants_gpu or (run.gpu_needed_by and not amd) else warn)(
            **where, **evidence
        )


def _loads_no_npu(imports: ModuleImports | Missing) -> bool:
    """Whether torch's plug-in for Ascend NPUs is installed and its import failed."""
    found = None if isinstance(imports, Missing) else imports.outcomes.get("torch_npu")
    return found is not None and not found.ok


_UNLISTED = (
    "look whether the machine has one (`lspci | grep -i nvidia`): if it has, load or install its driver;"
    " in a container or a job, request GPUs"
)


def _no_gpu_here(amd: int, run: RunNeeds, *, listed: bool) -> dict[str, Any]:
    """What is said of a machine without NVIDIA GPUs.

    Args:
        amd: number of its AMD GPUs.
        run: what the run asks for.
        listed: the devices of its PCI bus are known.
    """
    if amd:
        return {
            "message": f"{amd} AMD GPUs and none from NVIDIA, but no ROCm build of torch",
            "effect": _CPU,
            "hint": f"install {ROCM_BUILD}",
            "amd_gpus": amd,
        }
    if not listed:
        return {
            "message": "no NVIDIA GPU is found here, but GPUs are requested"
            if run.wants_gpu
            else "no NVIDIA GPU is found here",
            "effect": _CPU,
            "hint": _UNLISTED,
        }
    if run.wants_gpu:
        return {
            "message": "no NVIDIA GPU on this machine, but GPUs are requested",
            "effect": "the job finds no device and exits at startup",
            "hint": "run on a machine with a GPU, or omit `--gpus` and `--expect-gpus`",
        }
    return {
        "message": "no NVIDIA GPU on this machine",
        "effect": _CPU,
        "hint": "run on a machine with a GPU if the job needs one",
    }


def _meant_for_cuda(nvml: Nvml | Missing, toolkits: CudaToolkits | Missing) -> str:
    """Evidence that a machine without a known GPU is meant for CUDA; "" if there is none."""
    if isinstance(nvml, Nvml) and nvml.driver_version is not None:
        return f"driver {nvml.driver_version}"
    if isinstance(toolkits, CudaToolkits) and toolkits.chosen is not None:
        return "a CUDA toolkit"
    return ""


HINT = "compare `nvidia-smi -L` with `CUDA_VISIBLE_DEVICES`; in a container or a job, request GPUs"


TRACEBACK_RULES = (
    TracebackRule(
        file="torch/utils/cpp_extension.py",
        function="_get_cuda_arch_flags",
        kinds=("IndexError",),
        source="torch 1.10-2.13 utils/cpp_extension.py",
        level=Level.STRONG,
        example='Traceback (most recent call last):\n  File "/env/lib/python3.11/site-packages/torch/utils/cpp_extension.py", line 7, in _get_cuda_arch_flags\nIndexError: x',
    ),
)

SIGNATURES = _no_gpu_visible_signatures.SIGNATURES
