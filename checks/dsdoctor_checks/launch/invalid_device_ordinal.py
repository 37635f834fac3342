"""More ranks are requested on this node than it has GPUs.

## Why it matters
Launchers do not compare the number of ranks with the number of GPUs. Each rank uses the GPU of its
local rank, so the ranks beyond the last GPU stop with `CUDA error: invalid device ordinal`. The
other ranks wait for them.

## What to do
Request as many ranks as there are GPUs, or make more GPUs visible to the job.

## References
deepspeed/launcher/runner.py (`apply_num_nodes_and_gpus`), torch/distributed/run.py,
deepspeed/accelerator/ (`visible_devices_envs`: what selects the devices of each accelerator)
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from dsdoctor.api import (
    Condition,
    DeepSpeedLive,
    Environment,
    Finding,
    Gpus,
    Hostfile,
    LaunchCommand,
    Level,
    Missing,
    Packages,
    RunNeeds,
    Scope,
    Signature,
    Status,
    TorchBuild,
    TorchLive,
    Why,
    check,
    fail,
    has_gpu_ids,
    ok,
    skip,
    visible_count,
    warn,
    whole,
)
from dsdoctor_checks._util import (
    hosts_may_be_listed,
    may_be_set,
    other_accelerator,
    ranks_of_mpirun,
)

from ._other_devices import devices_of

CONDITION = Condition("invalid-device-ordinal", id="DSD1205", scope=Scope.JOB, since="0.1")


#: The option that sets the number of ranks on a node.
_OPTION = {
    "deepspeed": "--num_gpus",
    "torchrun": "--nproc-per-node",
    "accelerate": "--num_processes",
    "colossalai": "--nproc_per_node",
    "composer": "--nproc",
}


@check(CONDITION)
def ranks_have_devices(
    command: LaunchCommand,
    gpus: Gpus | Missing,
    environment: Environment | Missing,
    hostfile: Hostfile | Missing,
    run: RunNeeds,
    torch: TorchBuild | Missing,
    deepspeed: DeepSpeedLive | Missing,
    packages: Packages | Missing,
    live: TorchLive | Missing,
) -> Iterator[Finding]:
    """Compares the ranks of one node with its devices."""
    kind = command.inner or command.launcher
    asked = command.num_gpus
    inside, devices = run.container_ranks, run.container_gpus
    if inside is not None and devices is not None and inside > devices:
        what = _gpus(devices)
        yield fail(
            f"{inside} ranks are requested in the container, but it gets {what}"
            f" (`{run.container_gpus_by}`)",
            effect=f"ranks from {devices} on stop with `invalid device ordinal`",
            hint=f"start the container with `--gpus {inside}`, or lower the number of ranks to {devices}",
            ranks=inside,
            devices=devices,
        )
        return
    if command.launcher == "mpirun":
        yield from _of_mpirun(command, gpus, environment)
        return
    if asked is None or kind not in _OPTION or command.inner or "cpu" in command.options:
        return  # srun starts it on other nodes
    if kind == "colossalai" and {"host", "hostfile"} & command.options.keys():
        return  # and so does colossalai
    if hosts_may_be_listed(hostfile, command):
        if isinstance(hostfile, Missing):
            yield skip(hostfile.detail)
        return
    if run.container_gpus is not None and asked > run.container_gpus:
        what = _gpus(run.container_gpus)
        yield _too_many(
            f"{asked} ranks are requested in this container, but it gets {what}"
            f" (`{run.container_gpus_by}`)"
            if run.manifest
            else f"{asked} ranks are requested on this node, but its container gets {what}"
            f" (`{run.container_gpus_by}`)",
            _OPTION[kind],
            ranks=asked,
            devices=run.container_gpus,
        )
        return
    if isinstance(gpus, Missing) or not gpus.gpus:
        unread = isinstance(gpus, Missing) and gpus.why is Why.NOT_ASKED
        found = None
        if not (unread or has_gpu_ids(command) or run.container):
            other = other_accelerator(torch, deepspeed, packages, environment)
            found = devices_of(other, command, environment, live) if other else None
        yield from _without_gpus(command, asked, gpus, environment, found)
        return
    if any(gpu.mig_devices for gpu in gpus.gpus):
        return  # a MIG device is a device
    have = gpus.count or len(gpus.gpus)
    shown = None if kind == "deepspeed" else visible_count(command, environment, have)
    devices = have if shown is None else min(have, shown)
    if asked <= devices:
        yield ok(ranks=asked, devices=devices)
        return
    what = _gpus(have) if shown is None else f"{devices} of {have} GPUs visible"
    yield _too_many(
        f"{asked} ranks are requested on this node, but it has {what}",
        _OPTION[kind],
        ranks=asked,
        devices=devices,
        gpus=have,
    )


def _without_gpus(
    command: LaunchCommand,
    asked: int,
    gpus: Gpus | Missing,
    environment: Environment | Missing,
    other: tuple[int, str] | None,
) -> Iterator[Finding]:
    """Compares ranks with the devices of another accelerator, or with those that a variable lists."""
    kind = command.launcher
    if other is not None:
        devices, name = other
        what = "1 device" if devices == 1 else f"{devices} devices"
        if asked <= devices:
            yield ok(ranks=asked, devices=devices)
            return
        yield _too_many(
            f"{asked} ranks are requested on this node, but `{name}` lists {what}"
            if name
            else f"{asked} ranks are requested on this node, but torch finds {what}",
            _OPTION[kind],
            ranks=asked,
            devices=devices,
        )
        return
    if not isinstance(gpus, Missing):
        return
    # on a machine without a driver, a variable of the shell says nothing of the job's node
    shell = environment if gpus.why is Why.NOT_ASKED else gpus
    listed = None if kind == "deepspeed" else visible_count(command, shell)
    if listed and asked > listed:
        name = "gpu_ids" if has_gpu_ids(command) else "CUDA_VISIBLE_DEVICES"
        what = _gpus(listed)
        yield _too_many(
            f"{asked} ranks are requested on this node, but `{name}` lists {what}",
            _OPTION[kind],
            ranks=asked,
            devices=listed,
        )
        return
    status = Status.UNKNOWN if gpus.is_unknown else Status.SKIP
    yield Finding(status=status, message=gpus.detail)


#: Options of mpirun that name hosts or place ranks on them (Open MPI 4 and 5, MPICH 4), ...
_LISTS = frozenset({"H", "host", "hosts", "hostfile", "machinefile", "f"})
_PLACES = frozenset({"map_by", "ppr", "rf", "rankfile", "app", "configfile"})
#: ... those that state how many ranks each host gets ...
_PER_HOST = ("N", "npernode", "ppn", "perhost")
#: ... and variables of schedulers from which it learns its hosts.
_ALLOCATED = ("SLURM_JOB_ID", "PBS_NODEFILE", "LSB_HOSTS", "PE_HOSTFILE")


def _on_each_host(command: LaunchCommand) -> int | None:
    """How many ranks mpirun starts on each host by its own options; None = they do not say.

    It fills the slots of a host before it goes on to the next (Open MPI 4 and 5, `--map-by slot` and
    what it does without the option); the last host may get fewer, and of unequal hosts the smallest
    counts, since this may be any of them.
    """
    given = command.outer
    total = ranks_of_mpirun(command)
    mapped = re.match(r"ppr:(\d{1,4}):node\b", given.get("map_by", ""))
    stated = [whole(given[name]) for name in _PER_HOST if name in given]
    stated += [int(mapped[1])] if mapped else []
    if stated:
        count = stated[0]
        return min(count, total) if count is not None and total is not None else count
    if _PLACES & given.keys() or not command.mpi_slots:
        return None
    left = sum(command.mpi_slots) if total is None else total
    if left > sum(command.mpi_slots):
        return None  # it stops, unless it may oversubscribe
    full: list[int] = []
    for slots in command.mpi_slots:
        if 0 < left < slots and not full:
            return left
        if left >= slots:
            full.append(slots)
        left -= min(left, slots)
    return min(full, default=None)


def _ranks_here(command: LaunchCommand, environment: Environment | Missing) -> int | None:
    """How many ranks mpirun starts on this machine; None = that is not known."""
    if (_LISTS | _PLACES | {*_PER_HOST}) & command.outer.keys():
        return _on_each_host(command)
    elsewhere = any(may_be_set(environment, name) for name in _ALLOCATED)
    return None if elsewhere else ranks_of_mpirun(command)


def _of_mpirun(
    command: LaunchCommand, gpus: Gpus | Missing, environment: Environment | Missing
) -> Iterator[Finding]:
    """Ranks that mpirun starts on this machine.

    DeepSpeed and torch scripts select a device by the rank's number on its host. A script of
    another kind may share them, so that only a script with DeepSpeed's options is sure to fail.
    """
    count = _ranks_here(command, environment)
    if count is None:
        return
    if command.inner is not None or not (command.script or "").endswith(".py"):
        return
    if isinstance(gpus, Missing) or not gpus.gpus or any(gpu.mig_devices for gpu in gpus.gpus):
        return
    have = gpus.count or len(gpus.gpus)
    shown = visible_count(command, environment, have)
    devices = have if shown is None else min(have, shown)
    if count <= devices:
        yield ok(ranks=count, devices=devices)
        return
    say = fail if command.has_script_option("deepspeed", "ds_config") else warn
    what = _gpus(have) if shown is None else f"{devices} of {have} GPUs visible"
    yield say(
        f"`mpirun` starts {count} ranks on this node, but it has {what}",
        effect=f"ranks from {devices} on stop with `invalid device ordinal`, unless the script lets"
        " several ranks use one GPU",
        hint=f"start {devices} ranks on each host"
        if command.mpi_slots
        else f"start {devices} ranks, or list more hosts with `--hostfile`",
        ranks=count,
        devices=devices,
        gpus=have,
    )


def _gpus(have: int) -> str:
    return "1 GPU" if have == 1 else f"{have} GPUs"


def _too_many(message: str, option: str, *, ranks: int, devices: int, **others: int) -> Finding:
    fitting = "1 rank" if devices == 1 else f"{devices} ranks"
    return fail(
        message,
        effect=f"ranks from {devices} on stop with `invalid device ordinal`",
        hint=f"request {fitting}: `{option} {devices}`"
        if devices
        else "correct `CUDA_VISIBLE_DEVICES`, or unset it",
        ranks=ranks,
        devices=devices,
        **others,
    )


HINT = "start as many ranks per node as it has visible GPUs (`nvidia-smi -L` lists them)"

SIGNATURES = (
    Signature(
        pattern="invalid device ordinal",
        source="cuda runtime 12.9.79 libcudart.so.12",
        examples=("RuntimeError: CUDA error: invalid device ordinal",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        pattern="Invalid device id",
        source="torch 2.13.0 cuda/__init__.py",
        examples=("AssertionError: Invalid device id",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        pattern=r"(?:cudaErrorInvalidDevice|CUDA_ERROR_INVALID_DEVICE)\b",
        source="CUDA 10.1-13.0 driver_types.h, cudaGetErrorName; cuda.h, cuGetErrorName",
        examples=("cudaErrorInvalidDevice", "CUDA_ERROR_INVALID_DEVICE"),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        pattern=r"object on CUDA device \d+ but torch\.cuda\.device_count\(\) is",
        source="torch 1.0-2.13 serialization.py",
        examples=(
            "RuntimeError: Attempting to deserialize object on CUDA device 3 but torch.cuda.device_count() is 1.",
        ),
        not_examples=("on CUDA device 3 but torch.cuda.device_count() is 1.",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
        message="The file was saved from a GPU whose number does not exist here",
        hint='load it with `map_location="cpu"`',
    ),
    Signature(
        pattern="device < num_gpus.{0,20}INTERNAL ASSERT",
        source="torch 2.4.1 libtorch_cuda.so",
        examples=(
            "RuntimeError: device >= 0 && device < num_gpus INTERNAL ASSERT FAILED at CUDAContext.cpp:49",
        ),
        not_examples=("RuntimeError: device >= 0 && device < num_gpus INTERNAL",),
        level=Level.CERTAIN,
        masks=("nccl-timeout-watchdog", "no-gpu-visible"),
    ),
    Signature(
        pattern=r"\d+ GPUs?.{0,40} but only (?:found|have|\d)|(?:GPUs? available|num_gpus).{0,40}(?:less than|<).{0,40}(?:nproc|world)",
        source="programs' own checks of how many GPUs there are",
        examples=(
            "AssertionError: it requires 8 GPUs but only found 4",
            "ValueError: 4 GPUs asked for, but only 2 are visible",
            "GPU available ... less than ... nproc",
        ),
        not_examples=("$ deepspeed --num_gpus=4 train.py",),
    ),
    Signature(
        pattern=r"[Bb]ut your machine only has: \[\d|(?:required GPUs|[Ww]orld size|processes|tensor.parallel\w*).{0,40}(?:exceeds?|larger than|greater than) the (?:total )?number of available GPUs(?! in the (?:placement group|cluster))|Error: .{0,40}\b[Nn]ot enough GPUs\b|CUDA device \S+ not available, ",
        source=(
            "lightning 1.0-2.6 fabric/utilities/device_parser.py; vllm 0.5-0.11 "
            "executor/ray_utils.py"
        ),
        examples=(
            "MisconfigurationException: You requested gpu: [0, 1, 2] But your machine only has: [0]",
            "ValueError: The number of required GPUs exceeds the total number of available GPUs.",
            "RuntimeError: World size (4) is larger than the number of available GPUs (2)",
            "RuntimeError: Not enough GPUs",
            "CUDA device x1 not available, ",
        ),
        not_examples=(
            "WARNING: not enough GPUs for a second replica, using one",
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the placement group.",
            "ValueError: The number of required GPUs exceeds the total number of available GPUs in the cluster.",
        ),
    ),
)
