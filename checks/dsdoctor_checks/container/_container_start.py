"""A command that starts the job in a container without the GPUs of this machine."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.api import (
    ContainerRuntimes,
    ContainerStart,
    Environment,
    Finding,
    Gpus,
    Missing,
    NotStated,
    NvidiaKernel,
    OsInfo,
    Why,
    fail,
    warn,
)
from dsdoctor_checks._amd import amd_gpus
from dsdoctor_checks._util import amount, variable

#: Launchers whose ranks use GPUs unless they are told otherwise.
_LAUNCHERS = frozenset({"deepspeed", "torchrun", "accelerate"})
_NVIDIA = {
    "docker": "add `--gpus all` before the image",
    "nerdctl": "add `--gpus all` before the image",
    "podman": "add `--device nvidia.com/gpu=all` before the image (`nvidia-ctk cdi generate"
    " --output=/etc/cdi/nvidia.yaml` as root writes that specification)",
    "apptainer": "add `--nv` before the image",
    "singularity": "add `--nv` before the image",
}
_AMD = "add `--device /dev/kfd --device /dev/dri --group-add video` before the image"
_ENROOT = "install `nvidia-container-toolkit` on the nodes: it contains `nvidia-container-cli`"


def _needs_gpus(start: ContainerStart, env: Environment | Missing) -> bool:
    on_cpu = start.on_cpu or variable(env, "DS_ACCELERATOR") == "cpu"
    return not on_cpu and (start.launcher in _LAUNCHERS or start.uses_torch)


def gpus_are_passed_on(
    start: ContainerStart,
    runtimes: ContainerRuntimes | Missing,
    env: Environment | Missing,
    kernel: NvidiaKernel | Missing,
    gpus: Gpus | Missing,
    os: OsInfo | Missing,
) -> Iterator[Finding]:
    """Judges a start on a machine with GPUs; a setting of the machine may pass them on instead.

    A launcher fails without GPUs, a script that only imports torch may go on on the CPU.
    """
    program = start.program.split()[0]
    if not _needs_gpus(start, env) or start.unknown:
        return
    # counted one by one: of a paste, the list may be longer
    nvidia = sum(1 for _ in gpus.gpus) if isinstance(gpus, Gpus) else 0
    amd = 0 if nvidia else amd_gpus(os, kernel)
    say = fail if start.launcher in _LAUNCHERS else warn
    what = f"`{start.launcher}`" if start.launcher in _LAUNCHERS else f"`{start.script}`"
    if program == "srun":
        if nvidia and _is_enroot_broken(runtimes):
            yield say(
                "enroot's hook `98-nvidia.sh` passes GPUs to containers with `nvidia-container-cli`, which"
                " is not on PATH",
                effect="a container whose image asks for GPUs does not start, and any other container has no GPU",
                hint=_ENROOT,
                program=start.program,
            )
        return
    if start.gpus or _setting(runtimes, "gpus_by"):
        return
    if program == "docker" and not _has_no_default(runtimes):
        return
    if not nvidia and not (amd and program in ("docker", "podman", "nerdctl")):
        return
    yield say(
        f"`{start.program}` passes no GPU to the container, but it starts {what} on a machine with"
        f" {amount(nvidia or amd, 'GPU')}",
        effect="CUDA finds no device in the container: the job ends, or runs on the CPU",
        hint=_NVIDIA[program] if nvidia else _AMD,
        program=start.program,
        launcher=start.launcher,
        script=start.script,
        gpus=nvidia,
        amd_gpus=amd,
    )


def _setting(runtimes: ContainerRuntimes | Missing, name: str) -> str:
    """A setting of this machine; "" if it is not set, or not known."""
    try:
        return "" if isinstance(runtimes, Missing) else str(getattr(runtimes, name))
    except NotStated:  # a paste of `docker info`
        return ""


def _is_enroot_broken(runtimes: ContainerRuntimes | Missing) -> bool:
    if isinstance(runtimes, Missing):
        return False
    return runtimes.enroot_hook and not runtimes.container_cli


def _has_no_default(runtimes: ContainerRuntimes | Missing) -> bool:
    """Whether Docker's default runtime is known not to pass GPUs on, or nobody said that it does.

    Images of CUDA ask the runtime `nvidia` for GPUs by a variable of theirs.
    """
    if isinstance(runtimes, Missing):
        return runtimes.why is Why.NOT_ASKED  # a paste
    return _setting(runtimes, "default") in ("", "runc", "crun", "io.containerd.runc.v2")
