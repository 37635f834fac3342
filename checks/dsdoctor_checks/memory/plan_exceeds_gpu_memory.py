"""The run needs more GPU memory than the GPUs have.

## Why it matters
Weights, gradients and optimizer states must fit on the GPU (or on the host, with offload) before the
first step. Activations and logits need memory on top of that. A run that does not fit stops with
`CUDA out of memory`, often after minutes of loading.

The model of `--model` is compared, or the one that the command or its script names. For the latter, only what
does not depend on the data counts, and if the script may train fewer parameters (LoRA, frozen
layers), the need of adapters on 4-bit weights.

## What to do
Raise the ZeRO stage, offload the optimizer, lower the micro-batch or the sequence length, or use
more GPUs. `dsdoctor recommend --model MODEL` compares these options.

## References
- arXiv:1910.02054 (ZeRO), arXiv:2205.05198 (activations)
- `dsdoctor recommend --help`
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpu,
    Gpus,
    MemoryDemand,
    Missing,
    NotStated,
    RunNeeds,
    Scope,
    TorchLive,
    check,
    fail,
    ok,
    skip,
    warn,
)
from dsdoctor_checks._util import chosen, gib, visible_tokens
from dsdoctor_checks._where import recommend

from ._util import itemized, otherwise

CONDITION = Condition(
    "plan-exceeds-gpu-memory", id="DSD1401", scope=Scope.JOB, since="0.1", leads_to=("gpu-oom",)
)


def _missing_gpus(run: RunNeeds, used: tuple[Gpu, ...]) -> Finding | None:
    """A failure if the plan names GPUs that this machine does not have."""
    plan = run.plan
    if plan is None or not plan.gpu_ids or run.gpus or len(used) >= plan.gpus_per_node:
        return None
    return fail(
        f"the plan is for {plan.gpus_per_node} GPUs on each node "
        f"({', '.join(str(index) for index in plan.gpu_ids)}), but this machine has {len(used)} of"
        " them",
        effect="the launcher starts ranks that have no GPU",
        hint="run `dsdoctor recommend` on this machine",
        gpu_ids=list(plan.gpu_ids),
        found=len(used),
    )


def _compare(demand: MemoryDemand, total: int, free: int) -> Finding:
    """Compares the demand with the total memory of the smallest GPU, then with its free memory."""
    state, whole = demand.gpu_state_bytes, demand.gpu_bytes
    floor = demand.gpu_least_bytes
    planned = demand.source == "plan"
    evidence: dict[str, Any] = {
        "source": demand.source,
        "needed_gib": gib(whole),
        "state_gib": gib(state),
        "floor_gib": gib(floor),
        "gpu_gib": gib(total),
        "free_gib": gib(free),
        "items": demand.gpu_items,
        "assumed": list(demand.assumed),
    }
    by_command = demand.source == "command"
    assumed = f" (assumed: {', '.join(demand.assumed)})" if demand.assumed else ""
    least = f"but the smallest chosen GPU has {gib(total)} GiB"
    items = itemized(demand.gpu_items)
    hint = f"run `{recommend(demand.model)}` for a ZeRO stage, offload and micro-batch that fit"
    if by_command and floor < state:  # the command does not say what is trained
        if floor <= total:
            return ok(**evidence)
        return fail(
            f"{demand.what} needs {gib(floor)} GiB on each GPU even for LoRA adapters on 4-bit"
            f" weights, {least}",
            effect=f"the run stops with `CUDA out of memory`{assumed}",
            hint=hint,
            **evidence,
        )
    if floor <= total < state:
        return warn(
            f"{demand.what} needs {gib(state)} GiB on each GPU before any activation, {least}; "
            f"{otherwise(demand)}",
            effect=f"the run stops with `CUDA out of memory`{assumed}",
            hint=hint,
            **evidence,
        )
    if state > total or (planned and whole > total):
        need, before = (whole, "") if planned else (state, " before any activation")
        return fail(
            f"{demand.what} needs {gib(need)} GiB on each GPU{before}, {least} ({items})",
            effect=f"the run stops with `CUDA out of memory`{assumed}",
            hint=hint,
            **evidence,
        )
    if whole > total and not by_command:  # samples may be shorter than the longest
        return warn(
            f"{demand.what} needs about {gib(whole)} GiB on each GPU, {least} ({items})",
            effect=f"the run may stop with `CUDA out of memory`{assumed}",
            hint=hint,
            **evidence,
        )
    if state > free or (planned and whole > free):
        return warn(
            f"{demand.what} needs {gib(max(state, whole))} GiB on each GPU, but {gib(free)} of "
            f"{gib(total)} GiB are free",
            effect=f"the run stops with `CUDA out of memory` unless that memory is freed{assumed}",
            hint="stop the processes that use it (`nvidia-smi` lists them), or start the job on other GPUs",
            **evidence,
        )
    return ok(**evidence)


#: Total and free bytes.
_Size = tuple[int, int]


def _is_split(gpu: Gpu) -> bool:
    """Whether it has MIG devices, as far as is known: a paste may not contain them."""
    try:
        return bool(gpu.mig_mode and gpu.mig_devices)
    except NotStated:
        return False


def _slices(used: tuple[Gpu, ...], selector: str) -> list[_Size]:
    """The MIG device that a selector names; all of these GPUs if it names none of them."""
    held = [one for gpu in used if _is_split(gpu) for one in gpu.mig_devices or ()]
    asked = selector.strip().lower()
    named = [one for one in held if one.uuid and one.uuid.lower().startswith(asked)]
    return [
        (one.memory_total_bytes, one.memory_total_bytes - (one.memory_used_bytes or 0))
        for one in (named if asked.startswith("mig-") and named else held)
        if one.memory_total_bytes
    ]


def _sizes(used: tuple[Gpu, ...], run: RunNeeds, env: Environment | Missing) -> list[_Size]:
    """The memory that a rank gets on each GPU, as NVML reports it.

    A process sees one MIG device of all, whichever CUDA enumerates first if none is selected (NVIDIA's
    MIG user guide, "CUDA Device Enumeration"): the largest counts then, so that what fails fits on none.
    """
    entire = [gpu for gpu in used if not _is_split(gpu)]
    of_command = run.visible_devices
    tokens = of_command.split(",") if of_command is not None else visible_tokens(env) or ()
    selector = next(iter(run.gpus or tokens), "")
    if selector.strip().lower().startswith("mig-") or (used and not entire):
        held = _slices(used, selector)
        return [max(held)] if held else []
    return [
        (total, total if gpu.memory_free_bytes is None else gpu.memory_free_bytes)
        for gpu in entire
        if (total := gpu.memory_total_bytes)
    ]


def _sizes_of_torch(live: TorchLive | Missing, run: RunNeeds) -> list[_Size]:
    """The memory of the devices that torch sees, where NVML reports none: AMD's GPUs, or a Jetson's.

    None if the run selects some of them and they differ: their numbers may not be torch's.
    """
    if isinstance(live, Missing):
        return []
    try:
        sizes = [device.memory_bytes for device in live.devices if device.memory_bytes]
    except NotStated:
        return []
    if (run.gpus or run.visible_devices is not None) and len(set(sizes)) > 1:
        return []
    return [(size, size) for size in sizes[: run.device_count]]


@check(CONDITION)
def gpu_memory_is_enough(
    demand: MemoryDemand,
    gpus: Gpus | Missing,
    run: RunNeeds,
    env: Environment | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """Compares the demand with the smallest selected GPU, or the smallest that the plan names."""
    if not demand.on_gpu:
        yield skip("the run uses no GPU")
        return
    used = chosen(gpus, run, env)
    if run.plan is not None and run.plan.gpu_ids and not run.gpus and isinstance(gpus, Gpus):
        used = tuple(gpu for gpu in gpus.gpus if gpu.index in run.plan.gpu_ids)
    lacking = None if isinstance(gpus, Missing) else _missing_gpus(run, used)
    if lacking is not None:
        yield lacking
        return
    sizes = _sizes(used, run, env) or _sizes_of_torch(live, run)
    if not sizes:
        yield skip("the memory of no chosen GPU could be read")
        return
    if demand.ranks_here == 1 and demand.source != "plan":  # it uses one of them
        sizes = [max(sizes)]
    yield _compare(demand, min(total for total, _ in sizes), min(free for _, free in sizes))
