"""The memory that a model takes with a config, as a table in the report of `check --model`."""

from __future__ import annotations

from collections.abc import Iterator

from dsdoctor.model.facts.memory import Fit, MemoryDemand
from dsdoctor.model.launch_plan import Reach
from dsdoctor.model.units import gib

_NAME = 24
_COLUMN = 14


def _cell(size: int) -> str:
    return gib(size) if size else "-"


#: What explains the rows in which `host` stands.
HOST_SHORT = (
    "  host: one fits on the GPUs, but the memory of the host is too small for so many ranks"
)


def batch_cell(row: Fit | Reach) -> str:
    """The largest micro-batch; `-` if none fits on the GPUs, `host` if none on the host."""
    return "host" if row.host_short else str(row.micro_batch or "-")


def lines(demand: MemoryDemand) -> Iterator[str]:
    """Items with and without activation checkpointing, what fits, and what was assumed."""
    if demand.on_gpu:
        yield f"memory of each GPU, GiB: {demand.what}"
        columns = (demand.gpu_items, demand.plain_items)
        yield f"  {'':<{_NAME}}{'checkpointing':>{_COLUMN}}{'without':>{_COLUMN}}"
        for name in dict.fromkeys([*demand.gpu_items, *demand.plain_items]):
            cells = "".join(f"{_cell(items.get(name, 0)):>{_COLUMN}}" for items in columns)
            yield f"  {name:<{_NAME}}{cells}"
        sums = (demand.gpu_bytes, demand.plain_bytes)
        yield f"  {'peak':<{_NAME}}" + "".join(f"{_cell(size):>{_COLUMN}}" for size in sums)
        yield ""
    ranks = f" ({demand.ranks_here} ranks together)" if demand.ranks_here > 1 else ""
    yield f"memory of each host{ranks}, GiB"
    for name, size in demand.host_items.items():
        yield f"  {name:<{_NAME}}{_cell(size):>{_COLUMN}}"
    yield f"  {'peak':<{_NAME}}{_cell(demand.host_bytes):>{_COLUMN}}"
    if demand.fits:
        yield ""
        yield "what fits: largest micro-batch and longest sequence, each with the other unchanged"
        yield f"  {'GPUs':<6}{'checkpointing':<14}{'GiB each':>9}{'batch':>8}{'tokens':>9}"
    for row in demand.fits:
        mode = "yes" if row.checkpointing else "no"
        batch, tokens = batch_cell(row), row.sequence or "-"
        yield f"  {row.gpus:<6}{mode:<14}{_cell(row.gpu_bytes):>9}{batch:>8}{tokens:>9}"
    if any(row.host_short for row in demand.fits):
        yield HOST_SHORT
    if demand.assumed:
        yield ""
        yield "assumed, because neither the options nor the config set it:"
        yield from (f"  {assumption}" for assumption in demand.assumed)
