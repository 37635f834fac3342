"""Fact about the service that configures NVSwitches."""

from __future__ import annotations

from dsdoctor.model.facts.base import Fact


class FabricManager(Fact, frozen=True, kw_only=True):
    """The NVSwitches of this machine, and the fabric manager that configures them.

    Attributes:
        switches: NVSwitches that the driver exposes as devices; 0 on machines without any, in
            guests whose host owns the switches, and with NVLink 5 and later, where they are not
            PCI devices.
        running: the fabric manager's process runs; None if not all processes are visible.
        version: version of the installed program; None if it is not installed or reports none.
    """

    switches: int = 0
    running: bool | None = None
    version: str | None = None
