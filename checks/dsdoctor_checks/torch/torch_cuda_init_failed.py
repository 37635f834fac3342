"""torch imports, but CUDA initialization fails, hangs or crashes.

## Why it matters
The job exits or hangs at its first CUDA call. `torch.cuda.is_available()` may still be true, because
DeepSpeed makes it query only NVML.

## What to do
Run `python -c 'import torch; torch.cuda.init()'` and read the error together with `dmesg`.

## References
- DeepSpeed `__init__.py` (`PYTORCH_NVML_BASED_CUDA_CHECK`)
- driver_types.h, `cudaError`
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Missing,
    NvidiaKernel,
    Nvml,
    OsInfo,
    RunNeeds,
    Scope,
    TorchBuild,
    TorchLive,
    check,
    fail,
    skip,
)
from dsdoctor_checks._amd import amd_gpus, rocm_finds_none
from dsdoctor_checks._util import driver_answers, failed_to_start, gpu_expected, stated_for_cpu

CONDITION = Condition(
    "torch-cuda-init-failed",
    id="DSD306",
    scope=Scope.NODE,
    since="0.1",
    narrower=(
        "cpu-only-torch",
        "driver-missing",
        "driver-too-old",
        "driver-library-mismatch",
        "fabric-manager-not-running",
        "gpu-busy-exclusive-mode",
        "gpu-hardware-fault",
        "gpu-lost",
        "gpu-reset-required",
        "cuda-init-driver-state",
        "ecc-uncorrectable",
        "vgpu-unlicensed",
        "container-lost-gpu",
        "libcuda-unusable",
        "no-gpu-visible",
        "visible-devices-invalid",
        "gpu-arch-unsupported",
        "gpu-busy",
        "mig-without-instance",
        "slurm-gpus-not-visible",
        "wsl-driver-unavailable",
    ),
)
_NO_MEMORY, _NO_FUNCTION, _NO_DEVICE = 2, 98, 100
#: Errors at the start that other conditions judge by their number, and name themselves.
_JUDGED = frozenset({3, 34, 35, 802, 803, 804, 805, 999})
_SHOW_HOLDERS = "run `nvidia-smi`, and stop the processes that hold the memory of this GPU"
_MAY_OPEN = (
    "run `rocminfo`; the user must be able to open `/dev/kfd` and `/dev/dri/renderD*` (groups"
    " `render` and `video`), and ROCm must support the GPU"
)
_OTHER_AMD = (
    "torch has no code for this GPU: hide an integrated GPU with `HIP_VISIBLE_DEVICES`, or set"
    " `HSA_OVERRIDE_GFX_VERSION` to a related architecture that torch has code for (RDNA 2: 10.3.0, RDNA 3: 11.0.0)"
)
_COMPARE = (
    "compare `nvidia-smi -L` with `CUDA_VISIBLE_DEVICES` and the permissions of `/dev/nvidia*`"
)


@check(CONDITION)
def cuda_initializes(
    live: TorchLive,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    env: Environment | Missing,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    os: OsInfo | Missing,
    nvml: Nvml | Missing,
    command: LaunchCommand | Missing,
) -> Iterator[Finding]:
    """Judges failures of CUDA, of ROCm, or of one device, that no other condition explains."""
    if not live.imported.ok:
        yield skip("torch does not import")
        return
    if live.cuda_ok is True:
        for device in live.devices:
            if device.ok:
                continue
            full = device.error_code == _NO_MEMORY or "out of memory" in (device.error or "")
            yield fail(
                f"CUDA device {device.index} ({device.name}) is not usable: {_first(device.error)}",
                effect="the rank on that device exits at startup",
                hint=_SHOW_HOLDERS
                if full
                else _OTHER_AMD
                if device.error_code == _NO_FUNCTION and isinstance(torch, TorchBuild) and torch.hip
                else "look for `Xid` in `dmesg`, or exclude the device with `CUDA_VISIBLE_DEVICES`",
                device=device.index,
                error=device.error,
                # the words are those of a busy GPU
                error_text="" if _unlicensed(gpus) else device.error or "",
                code=device.error_code,
            )
        return
    failed = live.cuda_ok is False or (live.died is not None and "cuda" in live.last_step.lower())
    if not failed:
        return
    if rocm_finds_none(torch, live) and (amd := amd_gpus(os, kernel)):
        yield fail(
            f"the kernel offers {amd} AMD GPU{'s' * (amd != 1)}, but torch's ROCm build starts none"
            f" of them: {_first(live.cuda_error or live.died)}",
            effect="the job exits at its first use of a GPU, or runs on the CPU",
            hint=_MAY_OPEN,
            error=live.cuda_error,
            amd_gpus=amd,
        )
        return
    if stated_for_cpu(run, env, command):
        yield skip("the job is set to use the CPU")
        return
    if not (
        gpu_expected(run, kernel, gpus, env)
        or (isinstance(gpus, Missing) and driver_answers(nvml) and failed_to_start(live))
    ):
        yield skip("no GPU is present or requested")
        return
    code = f" (error {live.cuda_error_code})" if live.cuda_error_code is not None else ""
    yield fail(
        f"torch imports, but CUDA does not initialize{code}: {_first(live.cuda_error or live.died)}",
        effect="the job exits or hangs at its first CUDA call",
        hint=_COMPARE
        if live.cuda_error_code == _NO_DEVICE
        else "run `python -c 'import torch; torch.cuda.init()'` and check `dmesg` for its cause",
        error_text="" if live.cuda_error_code in _JUDGED else live.cuda_error or "",
        code=live.cuda_error_code,
        error=live.cuda_error,
        died=live.died,
        last_step=live.last_step,
    )


def _unlicensed(gpus: Gpus | Missing) -> bool:
    return isinstance(gpus, Gpus) and any(gpu.licensed is False for gpu in gpus.gpus)


def _first(error: str | None) -> str:
    """The sentence of an error that says what happened; torch adds advice, an allocator's too.

    >>> _first("Unexpected error from cudaGetDeviceCount(). Did you run x? Error 101: invalid device ordinal")
    'invalid device ordinal'
    >>> _first("CUDA out of memory. Tried to allocate 2.00 MiB. GPU 1 has a total capacity of 1 GiB")
    'CUDA out of memory. Tried to allocate 2.00 MiB'
    """
    line = (error or "").strip().splitlines()[0] if (error or "").strip() else "no reason given"
    numbered = re.search(r"cudaGetDeviceCount\(\)\..*Error \d+: (.+)", line)
    if numbered:
        return numbered[1]
    return line.partition(". GPU ")[0].rstrip(".")
