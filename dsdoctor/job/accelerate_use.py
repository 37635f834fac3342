"""Whether accelerate surely has no part in the job of a command."""

from __future__ import annotations

import sys

from dsdoctor.framework import packages_in
from dsdoctor.host import Host
from dsdoctor.model.facts.launch import LaunchCommand
from dsdoctor.probes.script_imports import starts_elsewhere
from dsdoctor.scripts.own_files import own_files

#: Packages that do not import accelerate, whatever they are told; the standard library neither.
_WITHOUT = frozenset(
    {"PIL", "apex", "cv2", "einops", "h5py", "matplotlib", "numpy", "pandas", "psutil", "requests",
     "scipy", "sklearn", "tensorboard", "tensorboardX", "torch", "torchaudio", "torchvision",
     "tqdm", "wandb", "yaml"}
)  # fmt: skip
#: Modules that start what a script names in other ways than by importing it.
_START = frozenset({"importlib", "runpy"})


def without_accelerate(command: LaunchCommand, host: Host, cwd: str) -> bool:
    """Whether neither the script nor its own modules import what may use accelerate.

    Args:
        command: the command that starts the job.
        host: whose files are read.
        cwd: the folder in which the command runs.
    """
    if starts_elsewhere(command):
        return False
    files = own_files(host, command.script or "", cwd)
    if files is None or not files.complete:
        return False
    known = (_WITHOUT | sys.stdlib_module_names | {"", *files.names}) - _START
    return all(packages_in(tree) <= known for tree in files.trees.values())
