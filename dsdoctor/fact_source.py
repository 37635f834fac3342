"""Where checks take their facts from."""

from __future__ import annotations

from typing import Protocol, TypeVar

from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.partial import NotStated

F = TypeVar("F", bound=Fact)


class Source(Protocol):
    """What facts are taken from: a snapshot, or something that reads one more lazily."""

    @property
    def run(self) -> RunNeeds:
        """What the run asked for."""
        ...

    def get(self, kind: type[F]) -> F | Missing:
        """The fact of a type, or why it is missing."""
        ...


class Facts:
    """Facts of one snapshot, each read once: many checks ask for the same.

    Attributes:
        snapshot: where they come from.
    """

    def __init__(self, snapshot: Source) -> None:
        self.snapshot = snapshot
        self.known: dict[type[Fact], Fact | Missing] = {}
        self._run: RunNeeds | None = None

    @property
    def run(self) -> RunNeeds:
        """What the run asked for."""
        if self._run is None:
            self._run = self.snapshot.run
        return self._run

    def get(self, kind: type[Fact]) -> Fact | Missing:
        """The fact of a type, or why it is missing."""
        value = self.known.get(kind)
        if value is None:
            value = self.known[kind] = self.snapshot.get(kind)
        return value


def has_gpu(snapshot: Source) -> bool:
    """Whether the kernel knows of an NVIDIA GPU, with or without a driver that works."""
    kernel = snapshot.get(NvidiaKernel)
    try:
        return not isinstance(kernel, Missing) and bool(kernel.pci or kernel.device_nodes)
    except NotStated:  # a paste that names the module and no GPU
        return False
