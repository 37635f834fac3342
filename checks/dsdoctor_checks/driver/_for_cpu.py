"""Whether a run is meant for the CPU, so that no GPU is missing."""

from __future__ import annotations

from dsdoctor.api import (
    Environment,
    LaunchCommand,
    Missing,
    NotStated,
    NvidiaKernel,
    OsInfo,
    RunNeeds,
    TorchBuild,
)
from dsdoctor_checks._amd import amd_gpus
from dsdoctor_checks._util import stated_for_cpu, visible_tokens

#: Options of the deepspeed launcher that place ranks on cores: those of the CPU accelerator, and those of
#: GPUs that offload to the CPU.
_CORES = frozenset({"bind_cores_to_rank", "bind_core_list"})


def _bound(command: LaunchCommand | Missing, torch: TorchBuild | Missing) -> bool:
    """Whether options of the launcher are meant for DeepSpeed's CPU accelerator."""
    bound = isinstance(command, LaunchCommand) and bool(_CORES & command.options.keys())
    return bound and built_for_cpu(torch)


def meant_for_cpu(
    run: RunNeeds,
    env: Environment | Missing,
    command: LaunchCommand | Missing,
    torch: TorchBuild | Missing,
    kernel: NvidiaKernel | Missing,
    os: OsInfo | Missing,
) -> str:
    """Why no GPU is missing: the run, or the machine and its torch, are for the CPU; "" if not."""
    if run.wants_gpu:
        return ""
    if stated_for_cpu(run, env, command):
        return "the run is set to use the CPU"
    if _bound(command, torch):
        return "the run asks for DeepSpeed's CPU accelerator"
    # a machine without a GPU on its PCI bus, and a torch that could not use one
    by_cpu = built_for_cpu(torch) and isinstance(kernel, NvidiaKernel) and not amd_gpus(os, kernel)
    if by_cpu and not run.gpu_needed_by and not visible_tokens(env):
        return "torch is built for the CPU, and nothing asks for a GPU"
    return ""


def built_for_cpu(torch: TorchBuild | Missing) -> bool:
    try:
        return (
            isinstance(torch, TorchBuild) and bool(torch.version) and not (torch.cuda or torch.hip)
        )
    except NotStated:
        return False
