"""Traits that should be equal on every node of a job, as short texts."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

from dsdoctor.fleet.replay import FleetNode
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpus, Nvml
from dsdoctor.model.facts.machine import Environment, NvidiaKernel, OsInfo, Resources
from dsdoctor.model.facts.python import DeepSpeedInstall, Packages, Patient, TorchBuild, TorchLive
from dsdoctor.model.units import GIB

#: Traits that break a run if they differ: both ends of a collective must have the same version.
BREAKING = ("torch", "DeepSpeed", "NCCL", "Python")
#: Variables that naturally differ between nodes or ranks.
_OWN = ("SLURM", "PMI", "PMIX", "OMPI_COMM", "MASTER_", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE")
_OWN_NAMES = frozenset({"HOME", "RANK", "LOCAL_RANK", "WORLD_SIZE", "GROUP_RANK", "TMPDIR"})


#: The facts that a trait is read from.
_SOURCES: dict[str, tuple[type[Fact], ...]] = {
    "driver": (Nvml, NvidiaKernel),
    "CUDA of the driver": (Nvml,),
    "GPUs": (Gpus,),
    "VBIOS": (Gpus,),
    "kernel": (OsInfo,),
    "system": (OsInfo,),
    "libc": (OsInfo,),
    "CPUs": (Resources, FleetNode),
    "memory": (Resources, FleetNode),
    "Python": (Patient,),
    "torch": (TorchBuild,),
    "CUDA of torch": (TorchBuild,),
    "NCCL": (TorchBuild, TorchLive),
    "DeepSpeed": (DeepSpeedInstall,),
    "transformers": (Packages,),
    "accelerate": (Packages,),
    "variable": (Environment,),
    "firmware": (FleetNode,),
    "mount": (FleetNode,),
}


class Facts(Protocol):
    """Where facts come from."""

    def get(self, kind: type[Fact]) -> Fact | Missing:
        """The fact of a type, or why it is missing."""
        ...


def traits_of(facts: Facts) -> dict[str, str]:
    """Name to value of each trait that is known."""
    found: dict[str, str | None] = {}
    nvml, kernel, gpus = facts.get(Nvml), facts.get(NvidiaKernel), facts.get(Gpus)
    if isinstance(nvml, Nvml):
        found["driver"] = nvml.driver_version
        if nvml.cuda_version is not None:
            found["CUDA of the driver"] = (
                f"{nvml.cuda_version // 1000}.{nvml.cuda_version % 1000 // 10}"
            )
    if found.get("driver") is None and isinstance(kernel, NvidiaKernel):
        found["driver"] = kernel.module_version
    if isinstance(gpus, Gpus):
        names = Counter(gpu.name or "unreadable GPU" for gpu in gpus.gpus)
        found["GPUs"] = ", ".join(f"{count} × {name}" for name, count in sorted(names.items()))
        found["GPUs"] = found["GPUs"] or "none"
        found["VBIOS"] = ", ".join(sorted({gpu.vbios for gpu in gpus.gpus if gpu.vbios}))
    system = facts.get(OsInfo)
    if isinstance(system, OsInfo):
        found["kernel"] = system.release
        found["system"] = system.distribution
        found["libc"] = system.libc
    found |= _software(facts)
    resources, node = facts.get(Resources), facts.get(FleetNode)
    host = node if isinstance(resources, Missing) else resources
    if isinstance(host, (Resources, FleetNode)) and host.memory_total_bytes is not None:
        found["CPUs"] = str(host.cpus_logical)
        # a few MiB differ on every machine
        found["memory"] = f"{host.memory_total_bytes / GIB:.0f} GiB"
    if isinstance(node, FleetNode):
        found |= {f"firmware {device}": text for device, text in node.firmware.items()}
        found |= {f"mount {point}": what for point, what in node.mounts.items()}
    return {name: value for name, value in found.items() if value}


def why_unknown(facts: Facts, trait: str) -> str:
    """Why `traits_of` does not know a trait that another machine has."""
    kinds = _SOURCES.get(trait) or _SOURCES[trait.partition(" ")[0]]
    missing = [found for kind in kinds if isinstance(found := facts.get(kind), Missing)]
    if len(missing) == len(kinds):
        return f"not read: {missing[0].detail}"
    if kinds == (Environment,):
        return "not set"
    return "not installed" if kinds == (Packages,) else "none reported"


def not_reported(trait: str) -> str:
    """What a report without a trait means: it does not contain the facts of the machine.

    >>> not_reported("variable NCCL_DEBUG"), not_reported("driver")
    ('not set', 'not reported')
    """
    return "not set" if trait.startswith("variable ") else "not reported"


def _software(facts: Facts) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    patient, torch = facts.get(Patient), facts.get(TorchBuild)
    if isinstance(patient, Patient):
        found["Python"] = patient.version
    if isinstance(torch, TorchBuild):
        found["torch"] = torch.version or "not installed"
        found["CUDA of torch"] = torch.cuda
        found["NCCL"] = torch.nccl
    live = facts.get(TorchLive)
    if isinstance(live, TorchLive) and live.nccl:
        found["NCCL"] = live.nccl
    deepspeed = facts.get(DeepSpeedInstall)
    if isinstance(deepspeed, DeepSpeedInstall):
        found["DeepSpeed"] = deepspeed.version or "not installed"
    packages = facts.get(Packages)
    if isinstance(packages, Packages):
        for name in ("transformers", "accelerate"):
            if name in packages.packages:
                found[name] = packages.packages[name].version
    env = facts.get(Environment)
    if isinstance(env, Environment):
        found |= {
            f"variable {name}": value
            for name, value in env.variables.items()
            if name not in _OWN_NAMES and not name.startswith(_OWN)
        }
    return found
