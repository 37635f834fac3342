"""More ranks are asked for on this node than it has GPUs.

## Why it matters
No launcher compares the number with the devices. Each rank takes the device of its local number,
so the ranks beyond the last GPU stop with `CUDA error: invalid device ordinal`, and the others wait
for them.

## What to do
Ask for as many ranks as there are GPUs, or show the job more of them.

## References
deepspeed/launcher/runner.py (`apply_num_nodes_and_gpus`), torch/distributed/run.py
"""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Missing,
    Scope,
    Signature,
    check,
    fail,
    ok,
)

from ..config._ranks import visible_count  # noqa: TID252  # families of one pack share it

CONDITION = Condition("invalid-device-ordinal", id="DSD1205", scope=Scope.JOB, since="0.1")


@check(CONDITION)
def ranks_have_devices(
    command: LaunchCommand,
    gpus: Gpus,
    environment: Environment | Missing,
    hostfile: Hostfile | Missing,
) -> Iterator[Finding]:
    """Compares the ranks of one node with its devices."""
    kind = command.inner or command.launcher
    asked = command.num_gpus
    if asked is None or kind not in {"deepspeed", "torchrun", "accelerate"}:
        return
    if command.inner or any(gpu.mig_devices for gpu in gpus.gpus) or not gpus.gpus:
        return  # srun and mpirun start it elsewhere; slices count as devices
    if "cpu" in command.options or (isinstance(hostfile, Hostfile) and hostfile.entries):
        return
    have = gpus.count or len(gpus.gpus)
    shown = None if kind == "deepspeed" else visible_count(command, environment)
    devices = have if shown is None else min(have, shown)
    if asked <= devices:
        yield ok(ranks=asked, devices=devices)
        return
    what = f"{devices} of {have} GPUs visible" if shown is not None else f"{have} GPUs"
    yield fail(
        f"{asked} ranks are asked for on this node, but it has {what}",
        effect=f"the ranks from {devices} on stop with `invalid device ordinal`",
        hint=f"ask for {devices} ranks",
        ranks=asked,
        devices=devices,
        gpus=have,
    )


HINT = "start as many processes as GPUs are visible (`nvidia-smi -L`)"

SIGNATURES = (
    Signature(
        anchor=(
            "invalid device ordinal",
            "nvalid device id",
            "cudaErrorInvalidDevice",
            "object on CUDA device ",
            "device < num_gpus",
        ),
        pattern=(
            r"invalid device ordinal|Invalid device id|cudaErrorInvalidDevice\b"
            r"|object on CUDA device \d+ but torch\.cuda\.device_count\(\) is"
            r"|device < num_gpus.{0,20}INTERNAL ASSERT"
        ),
        examples=(
            "RuntimeError: CUDA error: invalid device ordinal",
            "AssertionError: Invalid device id",
            "RuntimeError: Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1.",
            "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at CUDAContext.cpp:49",
        ),
        not_examples=(
            "device ordinal 1",
            "the phone has an invalid device id",
        ),
        weight=70,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        anchor=("but only ", "nproc_per_node", "GPUs available", "GPU available", "num_gpus"),
        pattern=(
            r"\d+ GPUs?.{0,40} but only (?:found|have|\d)|(?:GPUs? available|num_gpus).{0,40}(?:less than"
            r"|<).{0,40}(?:nproc|world)"
        ),
        examples=(
            "AssertionError: it requires 8 GPUs but only found 4",
            "ValueError: 4 GPUs asked for, but only 2 are visible",
        ),
        not_examples=("nproc_per_node=8",),
        weight=50,
    ),
    Signature(
        anchor=(
            "ut your machine only has",
            "number of available GPUs",
            "ot enough GPUs",
            "not available, ",
        ),
        pattern=r"[Bb]ut your machine only has: \[\d|(?:required GPUs|[Ww]orld size|processes|tensor.parallel\w*).{0,40}(?:exceeds?|larger than|greater than) the (?:total )?number of available GPUs|Error: .{0,40}\b[Nn]ot enough GPUs\b|CUDA device \S+ not available, ",
        examples=(
            "MisconfigurationException: You requested gpu: [0, 1, 2] But your machine only has: [0]",
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.",
            "RuntimeError: World size (4) is larger than the number of available GPUs (2)",
        ),
        not_examples=(
            "number of available GPUs: 8",
            "WARNING: not enough GPUs for a second replica, using one",
        ),
        weight=54,
    ),
)
