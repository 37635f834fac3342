"""Fact about the service that sets up NVSwitches."""

from __future__ import annotations

from dsdoctor.model.facts.base import Fact


class FabricManager(Fact, frozen=True, kw_only=True):
    """The NVSwitches of this machine, and the fabric manager that has to set them up.

    Attributes:
        switches: NVSwitches that the driver shows as devices; 0 on machines without, in guests of
            which the host owns the switches, and from NVLink 5 on, where they are no PCI devices.
        running: whether its process runs; None where not all processes of the machine are seen.
        version: of the installed program; None when it is not installed or does not tell.
    """

    switches: int = 0
    running: bool | None = None
    version: str | None = None
