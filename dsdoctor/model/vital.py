"""Facts without which a machine is never called healthy."""

from __future__ import annotations

from dsdoctor.model.facts.base import Fact
from dsdoctor.model.facts.gpu import Nvml
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.python import DeepSpeedInstall, TorchBuild, TorchLive

VITAL: tuple[type[Fact], ...] = (NvidiaKernel, Nvml, TorchBuild, TorchLive, DeepSpeedInstall)
