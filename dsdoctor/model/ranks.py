"""Number of ranks of the run, from the command, the hostfile, `--gpus` or the machine."""

from __future__ import annotations

import posixpath

import msgspec

from dsdoctor.model.facts.base import Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.launch import Hostfile, LaunchCommand
from dsdoctor.model.facts.machine import Environment
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.units import whole

#: Trainers that call torchrun by themselves, with the ranks on each host without `NPROC_PER_NODE`;
#: 0 = one for each GPU (ms-swift 4.2 cli/main.py; LLaMA-Factory 0.9 launcher.py).
_TRAINERS = {"swift": 1, "llamafactory-cli": 0}


class Ranks(msgspec.Struct, frozen=True):
    """A number of ranks.

    Attributes:
        count: how many.
        source: where the number comes from, in words.
        asked: the user chose it; False = all GPUs of the machine.
    """

    count: int
    source: str
    asked: bool = True


def visible_count(
    command: LaunchCommand | None, environment: Environment | Missing, have: int | None = None
) -> int | None:
    """Number of devices in `CUDA_VISIBLE_DEVICES`; None when it is not set, or not known.

    Accelerate sets it to its `gpu_ids` (1.15 utils/launch.py). CUDA ignores an index that is not
    below `have`, the number of GPUs, or that is no index, and all entries after it.
    """
    value = visible_devices(command, environment)
    if value is None:
        return None
    words = [word.strip() for word in value.split(",")]
    for place, word in enumerate(words):
        is_uuid = word.lower().startswith(("gpu-", "mig-"))
        if not is_uuid and (not word.isdecimal() or (have and int(word[:9]) >= have)):
            words = words[:place]
            break
    return len([word for word in words if word])


def has_gpu_ids(command: LaunchCommand) -> bool:
    """Whether accelerate selects GPUs, and overwrites `CUDA_VISIBLE_DEVICES` of the environment."""
    by_accelerate = (command.inner or command.launcher) == "accelerate"
    return by_accelerate and command.options.get("gpu_ids") not in (None, "", "all")


def visible_devices(
    command: LaunchCommand | None, environment: Environment | Missing
) -> str | None:
    """`CUDA_VISIBLE_DEVICES` of the ranks, as far as the command and the environment set it.

    None also for what a shell may still replace.
    """
    if command and has_gpu_ids(command):
        value: str | None = command.options["gpu_ids"]
    else:
        value = command.env.get("CUDA_VISIBLE_DEVICES") if command else None
        if value is None and isinstance(environment, Environment):
            value = environment.get("CUDA_VISIBLE_DEVICES")
    return None if value is not None and "$" in value else value


def _machine(
    command: LaunchCommand | None, environment: Environment | Missing, gpus: Gpus | Missing
) -> Ranks | None:
    shown = visible_count(command, environment)
    if shown:
        return Ranks(shown, "`CUDA_VISIBLE_DEVICES`", asked=command is not None)
    if isinstance(gpus, Gpus) and gpus.gpus:
        count = gpus.count or len(gpus.gpus)
        return Ranks(count, "the GPUs of this machine", asked=command is not None)
    return None


def _deepspeed(
    command: LaunchCommand,
    hostfile: Hostfile | Missing,
    environment: Environment | Missing,
    gpus: Gpus | Missing,
) -> Ranks | None:
    source = f"`{' '.join(command.argv[:3])} …`" if len(command.argv) > 3 else "the command"  # noqa: PLR2004
    pool: dict[str, int] = {}
    if isinstance(hostfile, Missing) and command.hostfile:
        return None  # its hosts are not known
    if isinstance(hostfile, Hostfile) and hostfile.entries:
        pool = {entry.host: entry.slots for entry in hostfile.entries}
    else:
        local = _machine(command, environment, gpus)
        pool = {"localhost": local.count if local else 0}
    for text, keep in ((command.include, True), (command.exclude, False)):
        if not text:
            continue
        chosen = command.filter_slots(text)
        if chosen is None:
            return None
        counts = {
            host: pool.get(host, 0) if slots is None else len(slots)
            for host, slots in chosen.items()
        }
        pool = counts if keep else {host: have - counts.get(host, 0) for host, have in pool.items()}
    if command.num_nodes and command.num_nodes > 0:
        pool = dict(list(pool.items())[: command.num_nodes])
    if command.num_gpus and command.num_gpus > 0:
        pool = dict.fromkeys(pool, command.num_gpus)
    count = sum(pool.values())
    return Ranks(count, source) if count > 0 and min(pool.values()) >= 0 else None


def _number(command: LaunchCommand, *names: str) -> int | None:
    for name in names:
        number = whole(command.options.get(name, ""))
        if number is not None:
            return number
    return None


#: Options that state the ranks of all nodes (mpirun(1), flux-run(1), Horovod 0.28, Composer 0.32).
_STATED = {
    "mpirun": ("np", "n", "c"),
    "horovodrun": ("np", "num_proc"),
    "flux": ("ntasks", "n"),
    "composer": ("world_size", "nproc"),
}


def _of_command(
    command: LaunchCommand,
    hostfile: Hostfile | Missing,
    environment: Environment | Missing,
    gpus: Gpus | Missing,
) -> Ranks | None:
    kind = command.inner or command.launcher
    if kind == "deepspeed":
        return _deepspeed(command, hostfile, environment, gpus)
    if kind == "torchrun":
        if "nnodes" in command.options and command.num_nodes is None:
            return None
        each = command.num_gpus
        if each is None:
            local = _machine(command, environment, gpus)
            each = local.count if local else None
        return None if each is None else Ranks(each * (command.num_nodes or 1), "`torchrun`")
    if kind == "accelerate":
        count = _number(command, "num_processes")
        if count is not None:
            return Ranks(count, "`--num_processes`")
        if not command.num_gpus or "num_processes" in command.options:
            return None
        # of its configuration, divided among the machines as accelerate does
        return Ranks(command.num_gpus * (command.num_nodes or 1), "`num_processes`")
    if kind == "srun":
        count = _number(command, "ntasks", "n")
        if count is None and command.num_gpus and command.num_nodes:
            count = command.num_gpus * command.num_nodes
        return None if count is None else Ranks(count, "`srun`")
    if kind in _STATED:
        count = _number(command, *_STATED[kind])
        return None if count is None else Ranks(count, f"`{kind}`")
    if kind == "python":
        return Ranks(1, "plain `python`")
    return _of_trainer(command, environment, gpus)


def _of_trainer(
    command: LaunchCommand, environment: Environment | Missing, gpus: Gpus | Missing
) -> Ranks | None:
    """Ranks of trainers that call torchrun with variables (sources: `_TRAINERS`)."""
    program = posixpath.basename(command.program)
    if program not in _TRAINERS:
        return None
    each = _of_variable(command, environment, "NPROC_PER_NODE", _TRAINERS[program])
    if each == 0:
        local = _machine(command, environment, gpus)
        each = local.count if local else None
    nodes = _of_variable(command, environment, "NNODES", 1)
    return None if not each or not nodes else Ranks(each * nodes, f"`{program}`")


def _of_variable(
    command: LaunchCommand, environment: Environment | Missing, name: str, default: int
) -> int | None:
    """The number that a variable states; None if it states something else."""
    value = command.env.get(name)
    if value is None and isinstance(environment, Environment):
        value = environment.get(name)
    return default if value is None else whole(value)


def ranks_of(
    run: RunNeeds,
    command: LaunchCommand | Missing,
    hostfile: Hostfile | Missing,
    environment: Environment | Missing,
    gpus: Gpus | Missing,
) -> Ranks | None:
    """The number of ranks; None when it cannot be determined."""
    if isinstance(command, LaunchCommand):
        return _of_command(command, hostfile, environment, gpus)
    if isinstance(hostfile, Hostfile) and hostfile.asked and hostfile.entries:
        return Ranks(hostfile.slots, f"the slots of `{hostfile.path}`")
    if run.gpus:
        return Ranks(len(run.gpus), "`--gpus`")
    if run.expect_gpus:
        return Ranks(run.expect_gpus, "the number of GPUs requested")
    return _machine(None, environment, gpus)


def hosts_of(
    command: LaunchCommand, hostfile: Hostfile | Missing, environment: Environment | Missing
) -> int | None:
    """On how many hosts a command of a launcher or trainer starts ranks.

    None: another launcher starts them, or their number cannot be determined.
    """
    kind = command.inner or command.launcher
    if posixpath.basename(command.program) in _TRAINERS:
        return _of_variable(command, environment, "NNODES", 1) or None
    if kind == "torchrun":
        return command.num_nodes or (None if "nnodes" in command.options else 1)
    if kind == "accelerate":
        stated = "num_machines" in command.options
        return _number(command, "num_machines") if stated else command.num_nodes or 1
    if kind != "deepspeed" or (isinstance(hostfile, Missing) and command.hostfile):
        return None
    if command.num_nodes:
        return command.num_nodes
    if command.include:
        chosen = command.filter_slots(command.include)
        return len(chosen) if chosen else None
    if isinstance(hostfile, Missing) or not hostfile.entries:
        return 1
    return None if command.exclude else len(hostfile.entries)
