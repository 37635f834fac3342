"""This machine, as input for `recommend` and `smoke`."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

from dsdoctor.examine import Request, read_machine
from dsdoctor.host import LocalHost
from dsdoctor.job.request import parse_gpus
from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.gpu import Gpus
from dsdoctor.model.facts.machine import NvidiaKernel, OsInfo, Resources
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.packs.registry import Registry
from dsdoctor.recommend.machine import Machine, machine_from

#: Facts from which launch settings are computed.
FACTS: frozenset[type[Fact]] = frozenset({Gpus, Resources, OsInfo, NvidiaKernel})


@dataclasses.dataclass(frozen=True, kw_only=True)
class MachineFacts:
    """What was read on this machine.

    Attributes:
        gpus: the GPUs, or why they are not known.
        resources: CPUs and memory.
        os: the operating system.
        needs: the GPUs that were requested.
        visible: `CUDA_VISIBLE_DEVICES` as the job would inherit it; None = not set.
        nvidia_devices: NVIDIA GPUs that are installed, whether a driver supports them or not.
    """

    gpus: Gpus | Missing
    resources: Resources | Missing
    os: OsInfo | Missing
    needs: RunNeeds
    visible: str | None = None
    nvidia_devices: int = 0

    def machine(self) -> Machine:
        """The machine in the form that `recommend` uses.

        Raises:
            UsageError: a requested GPU does not exist or cannot be read.
        """
        return machine_from(self.gpus, self.resources, self.needs, self.os, self.visible)


def read(
    gpus: Sequence[str] | None, registry: Registry, timeout: float | None = None
) -> MachineFacts:
    """Reads the facts that launch settings need; torch is not started.

    Args:
        gpus: selectors of `--gpus`; None = all in `CUDA_VISIBLE_DEVICES`.
        registry: packs, for their probes.
        timeout: limit for reading, in seconds; None = 180.

    Raises:
        UsageError: a selector is not one.
    """
    needs = RunNeeds(gpus=parse_gpus(gpus), quick=True)
    snapshot = read_machine(Request(run=needs, timeout=timeout, facts=FACTS), registry)
    kernel = snapshot.get(NvidiaKernel)
    return MachineFacts(
        gpus=snapshot.get(Gpus),
        resources=snapshot.get(Resources),
        os=snapshot.get(OsInfo),
        needs=needs,
        visible=LocalHost().env.get("CUDA_VISIBLE_DEVICES"),
        nvidia_devices=0 if isinstance(kernel, Missing) else len(kernel.pci),
    )
