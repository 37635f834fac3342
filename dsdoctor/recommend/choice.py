"""The choice among ZeRO stages and offload: what each would take, and the first that fits."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import msgspec

from dsdoctor.model.launch_plan import MemoryOption
from dsdoctor.recommend import memory
from dsdoctor.recommend.machine import GIB, Machine
from dsdoctor.recommend.options import HEADROOM, OPTIMIZERS, PlanOptions
from dsdoctor.recommend.setting import MAX_LIVE, Setting
from dsdoctor.recommend.shape import ModelShape

#: (stage, offload): each step down the list moves more bytes for each pass.
LADDER = (
    (0, "none"),
    (1, "none"),
    (2, "none"),
    (3, "none"),
    (1, "optimizer"),
    (2, "optimizer"),
    (3, "optimizer"),
    (3, "optimizer+parameters"),
)
#: What lies on the host; each copies more at every step than the one before.
OFFLOADS = ("none", "optimizer", "optimizer+parameters")
#: Optimizers that DeepSpeed can run on the host.
HOST_OPTIMIZERS = frozenset({"adamw", "adam", "lion", "adagrad"})
MICRO_BATCHES = (64, 32, 16, 8, 4, 2, 1)


@dataclasses.dataclass(frozen=True)
class Limits:
    """What may be used, and what share of it stays free.

    Attributes:
        gpu: bytes that the fullest GPU has free, None = no GPU.
        host: bytes that the host allows, None = not known.
        headroom: share that stays free.
    """

    gpu: int | None
    host: int | None
    headroom: float

    def fits(self, need: memory.Memory) -> bool:
        """Whether both are below their limits less the head-room."""
        room = 1 - self.headroom
        gpu_ok = self.gpu is None or need.gpu_bytes <= self.gpu * room
        return gpu_ok and (self.host is None or need.host_bytes <= self.host * room)

    def why_not(self, need: memory.Memory) -> str:
        """What is too much, and which item of it is the greatest."""
        parts = []
        for place, have, wanted, items in (
            ("GPU", self.gpu, need.gpu_bytes, need.gpu),
            ("host", self.host, need.host_bytes, need.host),
        ):
            if have is not None and wanted > have * (1 - self.headroom):
                most = max(items, key=lambda item: item.bytes)
                parts.append(
                    f"needs {wanted / GIB:.1f} GiB on each {place} ({most.name} alone "
                    f"{most.bytes / GIB:.1f}), but {have / GIB:.1f} GiB are free, of which "
                    f"{self.headroom:.0%} stay as head-room"
                )
        return "; ".join(parts)


def limits_of(machine: Machine, objective: str) -> Limits:
    """What the machine allows: the fullest of its GPUs is the limit of all."""
    return Limits(
        min((device.free_bytes for device in machine.devices), default=None),
        machine.host_bytes,
        HEADROOM[objective],
    )


def ladder(machine: Machine, optimizer: str) -> list[tuple[int, str]]:
    """The options to weigh: without GPUs, or for some optimizers, nothing can be offloaded."""
    if optimizer not in HOST_OPTIMIZERS or not machine.devices:
        return [step for step in LADDER if step[1] == "none"]
    return list(LADDER)


def base_setting(
    machine: Machine,
    model: ModelShape,
    options: PlanOptions,
    *,
    precision: str,
    sequence: int,
    world: int,
) -> Setting:
    """What all options have in common; buffers shrink with the memory that is free."""
    free = min((device.free_bytes for device in machine.devices), default=64 * GIB)
    small, tiny = free < 16 * GIB, free < 4 * GIB
    bucket = 5_000_000 if tiny else 50_000_000 if small else 200_000_000
    rank = options.lora_rank if options.finetune == "lora" else 0
    trained = model.lora_parameters(rank) if rank else model.parameters
    bucket = min(bucket, max(1_000_000, trained + trained % 2))
    live = 50_000_000 if tiny else 200_000_000 if small else MAX_LIVE
    return Setting(
        sequence=sequence,
        world=world,
        nodes=options.nodes,
        precision=precision,
        attention=options.attention,
        lora_rank=rank,
        state_bytes=OPTIMIZERS[options.optimizer],
        bucket=bucket,
        max_live=live,
        overlap=world > 1,
        pin_memory=machine.system == "Linux",
        on_gpu=bool(machine.devices),
    )


def _micro_batches(options: PlanOptions, world: int) -> tuple[int, ...]:
    """Micro-batches to try, the biggest first: a bigger one goes before accumulation."""
    if options.micro_batch:
        return (options.micro_batch,)
    if not options.global_batch:
        return MICRO_BATCHES
    each = options.global_batch // world
    return tuple(size for size in range(min(each, 64), 0, -1) if each % size == 0)


def size_option(
    model: ModelShape, base: Setting, options: PlanOptions, limits: Limits, workers: int
) -> MemoryOption:
    """The option at the biggest micro-batch that fits, without recomputation if it can be.

    If none fits, it is shown at the smallest micro-batch, recomputing if that is allowed.
    """
    sizes = _micro_batches(options, base.world)
    if options.objective == "memory":
        sizes = sizes[-1:]
    modes: tuple[bool, ...] = (False, True)
    if options.checkpointing is not None:
        modes = (options.checkpointing,)
    elif options.objective == "memory":
        modes = (True,)
    tried = [
        dataclasses.replace(
            base,
            micro_batch=size,
            checkpointing=mode,
            accumulation=(options.global_batch or size * base.world) // (size * base.world),
        )
        for mode in modes
        for size in sizes
    ]
    for setting in tried:
        need = memory.estimate(model, setting, workers=workers)
        if limits.fits(need):
            return _row(setting, need, limits, fits=True)
    return _row(setting, need, limits, fits=False)


def _row(setting: Setting, need: memory.Memory, limits: Limits, *, fits: bool) -> MemoryOption:
    name = f"zero-{setting.stage}"
    return MemoryOption(
        name=name if setting.offload == "none" else f"{name}+{setting.offload}",
        stage=setting.stage,
        offload=setting.offload,
        micro_batch=setting.micro_batch,
        accumulation=setting.accumulation,
        checkpointing=setting.checkpointing,
        gpu=need.gpu,
        host=need.host,
        gpu_bytes=need.gpu_bytes,
        host_bytes=need.host_bytes,
        gpu_limit_bytes=limits.gpu,
        host_limit_bytes=limits.host,
        fits=fits,
        reason="" if fits else limits.why_not(need),
    )


def choose(rows: Sequence[MemoryOption], objective: str) -> int:
    """Index of the option to take; of none that fits, the one that overshoots least."""

    def excess(index: int) -> float:
        row = rows[index]
        gpu = row.gpu_bytes / row.gpu_limit_bytes if row.gpu_limit_bytes else 0.0
        host = row.host_bytes / row.host_limit_bytes if row.host_limit_bytes else 0.0
        return max(gpu, host)

    fitting = [index for index, row in enumerate(rows) if row.fits]
    if not fitting:
        return min(range(len(rows)), key=excess)
    if objective == "memory":
        return min(fitting, key=lambda index: (rows[index].gpu_bytes, rows[index].host_bytes))

    def cost(index: int) -> tuple[int, bool, int]:
        row = rows[index]
        return (OFFLOADS.index(row.offload), row.checkpointing, index)

    return min(fitting, key=cost)


def verdicts(
    rows: Sequence[MemoryOption], best: int, objective: str, world: int
) -> tuple[MemoryOption, ...]:
    """The rows with what was decided on each, and why."""
    won = rows[best]
    return tuple(
        _judged(row, won, objective, world, chosen=index == best) for index, row in enumerate(rows)
    )


def _judged(
    row: MemoryOption, won: MemoryOption, objective: str, world: int, *, chosen: bool
) -> MemoryOption:
    verdict, reason = "rejected", row.reason
    if chosen and row.fits:
        verdict = "chosen"
        reason = (
            "takes the least memory on each GPU of all that fit"
            if objective == "memory"
            else "the first that fits with head-room, in the order of what is moved for each step"
        )
    elif row.fits and objective == "memory":
        reason = f"fits, but takes no less memory than {won.name}"
    elif row.fits and OFFLOADS.index(row.offload) > OFFLOADS.index(won.offload):
        more = "" if won.offload == "none" else "more "
        reason = f"fits, but copies {more}to the host at every step, which {won.name} does not"
    elif row.fits and row.checkpointing and not won.checkpointing:
        reason = f"fits, but only by recomputing activations, which {won.name} need not"
    elif row.fits and world == 1 and row.offload == won.offload:
        reason = f"fits, but with one rank there is nothing to divide: {won.name} does as well"
    elif row.fits:
        reason = f"fits, but moves no less for each step than {won.name}"
    judged: MemoryOption = msgspec.structs.replace(row, verdict=verdict, reason=reason)
    return judged


def headroom_left(row: MemoryOption) -> str:
    """What stays free with an option, in words."""
    parts = []
    for place, used, limit in (
        ("each GPU", row.gpu_bytes, row.gpu_limit_bytes),
        ("the host", row.host_bytes, row.host_limit_bytes),
    ):
        if limit:
            left = limit - used
            parts.append(f"{left / GIB:.1f} GiB ({left / limit:.0%}) of {place}")
    return " and ".join(parts)
