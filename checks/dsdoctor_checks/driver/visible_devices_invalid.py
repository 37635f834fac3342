"""CUDA_VISIBLE_DEVICES or --gpus selects a GPU that does not exist.

## Why it matters
CUDA reads `CUDA_VISIBLE_DEVICES` up to the first invalid entry and silently hides the rest. Ranks
then fail with "invalid device ordinal". A job also renumbers the visible GPUs from 0, so GPU 3 of
`nvidia-smi` may be device 1 of torch, or no device at all.

## What to do
List GPUs from `nvidia-smi -L`, by index or UUID, separated by commas, each once. To make CUDA use the
numbering of `nvidia-smi`, set `CUDA_DEVICE_ORDER=PCI_BUS_ID`.

On AMD GPUs, `HIP_VISIBLE_DEVICES` (or `CUDA_VISIBLE_DEVICES`, if the former is not set) counts from 0
among the GPUs that `ROCR_VISIBLE_DEVICES` leaves. Set one of them.

## References
- CUDA programming guide, environment variables
- DeepSpeed launcher/launch.py
- ROCm/clr rocclr/device/rocm/rocdevice.cpp, Device::init
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    LaunchCommand,
    Missing,
    NotStated,
    OsInfo,
    RunNeeds,
    Scope,
    Status,
    TorchBuild,
    Why,
    check,
    fail,
    skip,
    without_fix,
)
from dsdoctor_checks._util import amount, find, job_environment, variable, visible, visible_tokens

CONDITION = Condition(
    "visible-devices-invalid",
    id="DSD105",
    scope=Scope.JOB,
    since="0.1",
    fixes=("unset-variables",),
    leads_to=("invalid-device-ordinal", "no-gpu-visible", "slurm-gpus-not-visible"),
)


def _exists(token: str, gpus: Gpus) -> bool:
    if token.isdecimal():
        return int(token) < max(len(gpus.gpus), gpus.count or 0)
    return find(gpus.gpus, token) is not None


#: What old releases of Slurm (18.08 gres_common.c) set without a GPU; slurm-gpus-not-visible names it.
_WITHOUT_GPU = "NoDevFiles"


def _are_uuids_known(token: str, gpus: Gpus) -> bool:
    """Whether the UUIDs that an entry could match are known."""
    if token.startswith("MIG-"):
        return all(gpu.mig_devices is not None for gpu in gpus.gpus)
    return not token.startswith("GPU-") or all(gpu.uuid is not None for gpu in gpus.gpus)


@check(CONDITION)
def names_exist(
    gpus: Gpus | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    torch: TorchBuild | Missing,
    command: LaunchCommand | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Every entry must select a GPU that exists, and --gpus only visible ones."""
    env = job_environment(env, command)
    beyond = _left_by_rocr(torch, env) or _beyond_the_kernel(torch, env, os)
    if beyond is not None:
        yield beyond
        return
    if isinstance(gpus, Missing):
        status = Status.UNKNOWN if gpus.is_unknown else Status.SKIP
        yield Finding(
            status=status, message=gpus.detail, evidence={"fact": "gpus", "why": gpus.why.value}
        )
        return
    if not gpus.gpus:
        return
    yield from _select_nvidia(gpus, run, env)


def _select_nvidia(gpus: Gpus, run: RunNeeds, env: Environment | Missing) -> Iterator[Finding]:
    last = max(len(gpus.gpus), gpus.count or 0) - 1
    complete = gpus.stopped_at is None
    value = variable(env, "CUDA_VISIBLE_DEVICES")
    tokens = visible_tokens(env)
    in_slurm = bool(variable(env, "SLURM_JOB_ID"))
    for token in tokens or ():
        if _exists(token, gpus) or (not complete and not token.isdecimal()):
            continue
        if token == _WITHOUT_GPU and in_slurm:
            yield skip("Slurm has set `CUDA_VISIBLE_DEVICES` for a job that has no GPU")
            return
        if not _are_uuids_known(token, gpus):
            yield skip(f"the UUIDs to compare `{token}` with are not known")
            return
        yield fail(
            f"`CUDA_VISIBLE_DEVICES={value}` contains `{token}`, but the GPUs here are 0 to {last}",
            effect="CUDA ignores that entry and all after it, and ranks find no device",
            hint="remove `CUDA_VISIBLE_DEVICES` from the job script: Slurm sets it, and numbers the GPUs"
            " that the job sees from 0"
            if in_slurm
            else "use indices or UUIDs that `nvidia-smi -L` lists, or unset `CUDA_VISIBLE_DEVICES`",
            cuda_visible_devices=value,
            entry=token,
            first_index=0,
            last_index=last,
        )
        return
    for token in tokens or ():
        if (tokens or ()).count(token) > 1:
            yield fail(
                f"`CUDA_VISIBLE_DEVICES={value}` contains `{token}` twice,"
                " but each GPU may appear once",
                effect="CUDA lists no device, or two ranks share one GPU",
                hint="list each GPU once",
                cuda_visible_devices=value,
                entry=token,
            )
            return
    seen = visible(gpus, env)
    for selector in run.gpus:
        gpu = find(gpus.gpus, selector)
        if gpu is None and complete:
            yield without_fix(
                fail(
                    f"`--gpus` selects `{selector}`, but the GPUs here are 0 to {last}",
                    effect="the job requests a device that does not exist",
                    hint="use indices or UUIDs that `nvidia-smi -L` lists",
                    selector=selector,
                    first_index=0,
                    last_index=last,
                )
            )
        elif gpu is not None and gpu not in seen and tokens != ():
            yield fail(
                f"`--gpus {selector}` is GPU {gpu.index} of `nvidia-smi`, but"
                f" `CUDA_VISIBLE_DEVICES={value}` leaves {len(seen)} visible,"
                f" which torch numbers 0 to {len(seen) - 1}",
                effect="the job requests a device that it cannot see (invalid device ordinal)",
                hint=f"add {gpu.index} to `CUDA_VISIBLE_DEVICES`, or unset it",
                selector=selector,
                nvidia_smi_index=gpu.index,
                cuda_visible_devices=value,
                visible=[seen_gpu.index for seen_gpu in seen],
                torch_indices=list(range(len(seen))),
                count=len(seen),
            )


#: HIP reads the second only if the first is empty.
_OF_HIP = ("HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES")


def _left_by_rocr(torch: TorchBuild | Missing, env: Environment | Missing) -> Finding | None:
    """HIP counts the GPUs that the layer below it leaves, and stops at the first invalid index."""
    below = variable(env, "ROCR_VISIBLE_DEVICES")
    name = next((one for one in _OF_HIP if variable(env, one)), None)
    if not below or name is None or not _is_for_rocm(torch, name):
        return None
    value = variable(env, name) or ""
    left = len([one for one in below.split(",") if one.strip()])
    indices = [one.strip() for one in value.split(",")]
    beyond = [one for one in indices if one.isdecimal() and int(one[:9]) >= left]
    if not beyond:
        return None
    return fail(
        f"`{name}={value}` contains `{beyond[0]}`, but `ROCR_VISIBLE_DEVICES={below}` leaves"
        f" {amount(left, 'GPU')}, numbered from 0",
        effect="HIP ignores that entry and all after it, and ranks find no device",
        hint=f"set only one of them: unset `ROCR_VISIBLE_DEVICES` or `{name}`",
        entry=beyond[0],
        left=left,
    )


def _beyond_the_kernel(
    torch: TorchBuild | Missing, env: Environment | Missing, os: OsInfo | Missing
) -> Finding | None:
    """An index that no GPU has that the kernel offers to ROCm; the lowest layer counts from 0."""
    names = ("ROCR_VISIBLE_DEVICES", *_OF_HIP)
    name = next((one for one in names if variable(env, one)), None)
    if name is None or not _is_for_rocm(torch, name) or isinstance(os, Missing):
        return None
    value, here = variable(env, name) or "", os.amd_gpus
    indices = [one.strip() for one in value.split(",")]
    beyond = [one for one in indices if one.isdecimal() and int(one[:9]) >= here]
    if not here or not beyond:  # without one, another condition says so
        return None
    last = here - 1
    return fail(
        f"`{name}={value}` contains `{beyond[0]}`, but the GPUs here are 0 to {last}",
        effect="ROCm ignores that entry and all after it, and ranks find no device",
        hint=f"use indices from 0 to {last}, or unset `{name}`",
        entry=beyond[0],
        first_index=0,
        last_index=last,
    )


def _is_for_rocm(torch: TorchBuild | Missing, name: str) -> bool:
    """Whether torch uses ROCm; of a paste that does not say so, whether a variable of ROCm does."""
    told = name != _OF_HIP[1]
    if isinstance(torch, Missing):
        return told and torch.why is Why.NOT_ASKED
    try:
        return torch.hip is not None
    except NotStated:
        return told
