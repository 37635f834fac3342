"""Which GPUs of this host a command can see: only those are sampled and warned about.

Sources: CUDA C programming guide, "CUDA environment variables"; deepspeed 0.19.8
`launcher/runner.py` (main, parse_resource_filter) and `launcher/launch.py`; accelerate 1.15
`utils/launch.py` (gpu_ids); Slurm 25.05 `gres.conf` and `srun` manuals. Read 2026-11.
"""

from __future__ import annotations

import dataclasses
import platform
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from dsdoctor import hostfile
from dsdoctor.errors import UsageError
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.probes.command_line import parse_command

CUDA = "CUDA_VISIBLE_DEVICES"
#: Indices as the host numbers GPUs, even if a control group hides some of them.
SLURM = ("SLURM_STEP_GPUS", "SLURM_JOB_GPUS")
UNSURE = (
    "all GPUs are sampled: they are of several models, and without `CUDA_DEVICE_ORDER=PCI_BUS_ID` "
    "their numbers do not say which ones the command sees"
)
_LOCAL = ("localhost", "127.0.0.1")


@dataclasses.dataclass(frozen=True)
class GpuChoice:
    """GPUs, as `watch_gpus.py` expects them.

    Attributes:
        selector: `all`, `only:0,GPU-1f…` (as CUDA_VISIBLE_DEVICES), `not:0`, or `job:2,3`:
            indices of the host, which apply if more GPUs than these are visible.
        why: where the choice comes from; "" = no choice.
        by_pci: indices are in the order of PCI addresses, like NVML's.
    """

    selector: str = "all"
    why: str = ""
    by_pci: bool = False


def choose(command: Sequence[str], env: Mapping[str, str]) -> GpuChoice:
    """The GPUs that a command can see.

    Args:
        command: as typed.
        env: the environment in which it is started.

    >>> choose(["python", "train.py"], {"CUDA_VISIBLE_DEVICES": "2,3"}).selector
    'only:2,3'
    >>> choose(["deepspeed", "--include", "localhost:4,5", "train.py"], {}).selector
    'only:4,5'
    >>> choose(["deepspeed", "--num_gpus", "2", "train.py"], {"CUDA_VISIBLE_DEVICES": "7"}).selector
    'only:0,1'
    >>> choose(["python", "train.py"], {"SLURM_JOB_ID": "1", "SLURM_JOB_GPUS": "2-3"}).selector
    'job:2,3'
    >>> choose(["python", "train.py"], {}).selector
    'all'
    """
    parsed = parse_command(tuple(command))
    merged = {**env, **parsed.env}
    found = _of_launcher(parsed, merged) or _of_environment(merged)
    return dataclasses.replace(found, by_pci=merged.get("CUDA_DEVICE_ORDER") == "PCI_BUS_ID")


def _of_environment(env: Mapping[str, str]) -> GpuChoice:
    value = env.get(CUDA)
    if value is not None:
        return GpuChoice(f"only:{value}", f"`{CUDA}={value}`")
    if "SLURM_JOB_ID" in env:
        for name in SLURM:
            if env.get(name):
                return GpuChoice(f"job:{_expanded(env[name])}", f"`{name}={env[name]}`")
    return GpuChoice()


def _expanded(text: str) -> str:
    """Expands ranges, which Slurm may write.

    >>> _expanded("0,2-4")
    '0,2,3,4'
    """
    items: list[str] = []
    for item in text.split(","):
        ends = re.fullmatch(r"(\d{1,3})-(\d{1,3})", item.strip())
        items += map(str, range(int(ends[1]), int(ends[2]) + 1)) if ends else [item.strip()]
    return ",".join(items)


def _of_launcher(command: LaunchCommand, env: Mapping[str, str]) -> GpuChoice | None:
    """What the launcher chooses; None = it uses the choice of the environment."""
    if "deepspeed" in (command.launcher, command.inner):
        return _of_deepspeed(command, env)
    ids = command.options.get("gpu_ids", "")
    if "accelerate" in (command.launcher, command.inner) and ids not in ("", "all"):
        return GpuChoice(f"only:{ids}", f"`--gpu_ids {ids}`")
    return None


def _of_deepspeed(command: LaunchCommand, env: Mapping[str, str]) -> GpuChoice | None:
    """The choice of `deepspeed`, which drops CUDA_VISIBLE_DEVICES if an option chooses GPUs."""
    slots = _slots(command, env)
    if command.include or command.exclude:
        option = "include" if command.include else "exclude"
        text = command.include or command.exclude
        why = f"`--{option} {text}`"
        known = _on_this_host(text)
        if known is None:
            return GpuChoice("all", f"{why} lists no host that is known to be this one")
        if option == "include" and known:
            return GpuChoice(f"only:{known}", why)
        if option == "exclude":
            return GpuChoice(f"not:{known}" if known else "only:", why)
        # a host without numbers: all of its slots
        return None if slots is None else GpuChoice(f"only:{_first(slots)}", why)
    if command.num_gpus:
        return GpuChoice(f"only:{_first(command.num_gpus)}", f"`--num_gpus {command.num_gpus}`")
    if slots is not None:
        return GpuChoice(f"only:{_first(slots)}", f"the hostfile's `slots={slots}`")
    return GpuChoice() if (command.num_nodes or 0) > 1 else None


def _first(count: int) -> str:
    return ",".join(map(str, range(count)))


def _own_names() -> set[str]:
    name = platform.node()
    return {*_LOCAL, name, name.partition(".")[0]}


def _on_this_host(text: str) -> str | None:
    """Indices of this host in `HOST:0,1@HOST`; "" = all, None = the host is not in it."""
    for part in text.split("@"):
        host, _, numbers = part.strip().partition(":")
        if host in _own_names():
            return numbers.replace(" ", "")
    return None


def _slots(command: LaunchCommand, env: Mapping[str, str]) -> int | None:
    """Slots of this host in the hostfile; None = no hostfile, or the host is not in it."""
    path = command.hostfile or env.get("DLTS_HOSTFILE") or hostfile.DEFAULT_HOSTFILE
    if not Path(path).is_file():
        return None
    try:
        slots = hostfile.read(path)
    except UsageError:
        return None  # the preflight check reports it
    return next((count for host, count in slots.items() if host in _own_names()), None)
