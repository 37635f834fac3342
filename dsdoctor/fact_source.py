"""Where checks get their facts from."""

from __future__ import annotations

from typing import Protocol, TypeVar

from dsdoctor.model.facts.base import Fact, Missing
from dsdoctor.model.facts.machine import NvidiaKernel
from dsdoctor.model.facts.run import RunNeeds
from dsdoctor.model.partial import NotStated

F = TypeVar("F", bound=Fact)


class FactSource(Protocol):
    """A snapshot, or an object that reads facts only when they are asked for."""

    @property
    def run(self) -> RunNeeds:
        """What the job needs."""
        ...

    def get(self, kind: type[F]) -> F | Missing:
        """The fact of a type, or why it is missing."""
        ...


class Facts:
    """Facts of one snapshot, each decoded once: many checks need the same ones.

    Attributes:
        snapshot: where they come from.
        known: the facts that were decoded so far.
    """

    def __init__(self, snapshot: FactSource) -> None:
        self.snapshot = snapshot
        self.known: dict[type[Fact], Fact | Missing] = {}
        self._run: RunNeeds | None = None

    @property
    def run(self) -> RunNeeds:
        """What the job needs."""
        if self._run is None:
            self._run = self.snapshot.run
        return self._run

    def get(self, kind: type[Fact]) -> Fact | Missing:
        """The fact of a type, or why it is missing."""
        value = self.known.get(kind)
        if value is None:
            value = self.known[kind] = self.snapshot.get(kind)
        return value


def has_gpu(snapshot: FactSource) -> bool:
    """Whether the kernel lists an NVIDIA GPU, with or without a working driver."""
    kernel = snapshot.get(NvidiaKernel)
    try:
        return not isinstance(kernel, Missing) and bool(kernel.pci or kernel.device_nodes)
    except NotStated:  # a pasted text that mentions the kernel module but no GPU
        return False
