"""From the records of `children/nvml.py` to facts; pure, so that it can be tested without a GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from dsdoctor.model.facts.gpu import Gpu, GpuLink, GpuPair, Gpus, GpuTopology, Nvml, NvmlError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

T = TypeVar("T")


class ParsedNvml(msgspec.Struct, frozen=True, kw_only=True):
    """The parsed records.

    nvml: the driver, or NVML's error; None if the records end before either
    gpus: the GPUs; None if NVML was not queried for them
    topology: pairs of GPUs; None if the records end before them
    stopped_at: the step at which the records end, None if they are complete
    malformed: what is wrong with records that could not be used
    """

    nvml: Nvml | None = None
    gpus: Gpus | None = None
    topology: GpuTopology | None = None
    stopped_at: str | None = None
    malformed: tuple[str, ...] = ()


def parse(records: Sequence[Mapping[str, object]]) -> ParsedNvml:
    """Turns records into facts; the records of a truncated stream are used.

    >>> parse([{"step": "import pynvml"}, {"step": "nvmlInit"}]).stopped_at
    'nvmlInit'
    """
    reading = _Reading()
    for record in records:
        reading.take(record)
    return reading.result()


class _Reading:
    """Records taken so far."""

    def __init__(self) -> None:
        self._step = "start"
        self._done = False
        self._nvml: Nvml | None = None
        self._count: int | None = None
        self._gpus: dict[int, Gpu] = {}
        self._topology: GpuTopology | None = None
        self._malformed: list[str] = []

    def take(self, record: Mapping[str, object]) -> None:
        """Takes one record; an unknown kind comes from a newer child."""
        step = record.get("step")
        if isinstance(step, str):
            self._step = step
        elif record.get("done") is True:
            self._done = True
        elif isinstance(fact := record.get("fact"), str):
            self._take_fact(fact, record.get("value"))

    def _take_fact(self, fact: str, value: object) -> None:
        if fact == "driver":
            self._nvml = self._convert(fact, value, Nvml) or self._nvml
        elif fact == "nvml_error":
            error = self._convert(fact, value, NvmlError)
            if error is not None:
                self._nvml = msgspec.structs.replace(self._nvml or Nvml(), error=error)
        elif fact == "gpu_count":
            self._count = self._convert(fact, value, int)
        elif fact == "gpu":
            gpu = self._convert(fact, value, Gpu)
            if gpu is not None:
                self._gpus[gpu.index] = gpu
        elif fact == "topology":
            self._topology = self._convert(fact, value, GpuTopology)

    def _convert(self, fact: str, value: object, kind: type[T]) -> T | None:
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            self._malformed.append(f"{fact}: {error}")
            return None

    def result(self) -> ParsedNvml:
        """The facts."""
        stopped_at = None if self._done else self._step
        gpus = None
        if self._count is not None or self._gpus:
            found = tuple(self._gpus[index] for index in sorted(self._gpus))
            gpus = Gpus(gpus=found, count=self._count, stopped_at=stopped_at)
        topology = self._topology
        if topology is not None:
            pairs = tuple(_with_nvlinks(pair, self._gpus) for pair in topology.pairs)
            topology = GpuTopology(pairs=pairs)
        return ParsedNvml(
            nvml=self._nvml,
            gpus=gpus,
            topology=topology,
            stopped_at=stopped_at,
            malformed=tuple(self._malformed),
        )


def _with_nvlinks(pair: GpuPair, gpus: Mapping[int, Gpu]) -> GpuPair:
    first, second = gpus.get(pair.a), gpus.get(pair.b)
    if first is None or second is None:
        return pair
    changes: dict[str, Any] = {"nvlinks": count_nvlinks(first, second)}
    return msgspec.structs.replace(pair, **changes)


def count_nvlinks(first: Gpu, second: Gpu) -> int | None:
    """Count the active NVLinks between two GPUs, as `nvidia-smi topo -m` does (NV12).

    Through NVSwitches every GPU reaches every other with all its links, so there the GPU with fewer
    active links decides.
    """
    counts = (_links_toward(first, second), _links_toward(second, first))
    if counts[0] is None or counts[1] is None:
        return None
    return min(counts[0], counts[1])


def _links_toward(here: Gpu, there: Gpu) -> int | None:
    if here.links is None:
        # "Not supported" is knowledge: this GPU has no NVLink.
        reason = here.unread.get("links")
        return 0 if reason is not None and reason.name == "NOT_SUPPORTED" else None
    direct = sum(link.remote_bdf == there.pci_bdf for link in here.active_links)
    switched = sum(link.remote_type == "SWITCH" for link in here.active_links)
    vague = any(_leads_anywhere(link) and link.remote_bdf != there.pci_bdf for link in here.links)
    return None if vague else direct or switched


def _leads_anywhere(link: GpuLink) -> bool:
    """Whether the target of a link that is up, or may be up, is unknown."""
    if link.state is None:
        return True
    kind = link.remote_type or "UNKNOWN"
    lost_peer = kind == "GPU" and link.remote_bdf is None
    return link.active and (kind.startswith("UNKNOWN") or lost_peer)
