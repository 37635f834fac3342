"""What would make a plan fit that does not: each change is sized before it is named."""

from __future__ import annotations

import contextlib
import dataclasses
import math
from collections.abc import Iterator

from dsdoctor.errors import UsageError
from dsdoctor.model.launch_plan import MemoryOption, Reason
from dsdoctor.model.units import GIB, gib
from dsdoctor.recommend import choice, memory
from dsdoctor.recommend.machine import Machine
from dsdoctor.recommend.options import PlanOptions, note
from dsdoctor.recommend.setting import Setting
from dsdoctor.recommend.shape import ModelShape

#: Numbers of GPUs on a host, and of hosts, that are tried.
GPUS, NODES = (2, 4, 8), (2, 4, 8, 16)
#: Sequences are shortened by halves to no less than this.
SHORTEST = 512
#: GPU memory as it is sold, GiB.
CARDS = (16, 24, 32, 40, 48, 80, 96, 141, 180, 288)
#: FSDP divides a quantized model while it loads: README of LLaMA-Factory, 2024-03-20; documentation
#: of bitsandbytes, "FSDP-QLoRA" (read 2026-11-23).
FSDP = (
    "DeepSpeed partitions a 4-bit model only after each GPU has loaded all of it; FSDP with "
    "QLoRA partitions it while it loads"
)


@dataclasses.dataclass(frozen=True, kw_only=True)
class Request:
    """All that a plan is computed from."""

    machine: Machine
    model: ModelShape
    options: PlanOptions
    base: Setting
    limits: choice.Limits
    workers: int

    def fitting(self) -> MemoryOption | None:
        """The first option that fits."""
        for stage, offload in choice.ladder(self.machine, self.options):
            setting = dataclasses.replace(self.base, stage=stage, offload=offload)
            row = choice.size_option(self.model, setting, self.options, self.limits, self.workers)
            if row.fits:
                return row
        return None

    def changed(self, machine: Machine | None = None, **options: object) -> Request:
        """The same request with other options, or on another machine."""
        asked = dataclasses.replace(self.options, **options)  # type: ignore[arg-type]  # by name
        machine = machine or self.machine
        world = max(1, len(machine.devices)) * asked.nodes
        sequence = asked.sequence or self.base.sequence
        base = choice.base_setting(
            machine,
            self.model,
            asked,
            precision=self.base.precision,
            sequence=sequence,
            world=world,
            attention=self.base.attention,
            image_tokens=min(self.base.image_tokens, sequence),
        )
        return dataclasses.replace(self, machine=machine, options=asked, base=base)


#: Changes of one kind, the cheapest first: the message to the user, and the changed request.
Candidates = Iterator[tuple[str, Request]]


def _loss(request: Request) -> Candidates:
    if not request.options.fused_loss:
        yield "`--fused-loss` (Liger kernels)", request.changed(fused_loss=True)


def _adapters(request: Request) -> Candidates:
    if request.options.finetune == "full":
        yield "`--finetune lora`", request.changed(finetune="lora")


def _quantized_adapters(request: Request) -> Candidates:
    if request.options.finetune in ("full", "lora"):
        yield "`--finetune qlora`", request.changed(finetune="qlora", modules_to_save=())


def _shorter_sequences(request: Request) -> Candidates:
    length = request.base.sequence // 2
    while length >= SHORTEST:
        yield f"`--seq-len {length}`", request.changed(sequence=length)
        length //= 2


def _more_gpus(request: Request) -> Candidates:
    machine = request.machine
    for count in GPUS:
        if 0 < len(machine.devices) < count and not any(one.mig for one in machine.devices):
            more = dataclasses.replace(machine, devices=machine.devices[:1] * count)
            yield f"{count} such GPUs", request.changed(more, global_batch=None)


def _more_nodes(request: Request) -> Candidates:
    gpus = len(request.machine.devices)
    for nodes in NODES:
        if nodes > request.options.nodes and gpus:
            changed = request.changed(nodes=nodes, hosts=(), global_batch=None)
            yield f"{nodes} nodes of {gpus} such GPUs", changed


#: Kinds of change, the cheapest for the user first.
_KINDS = (
    _loss, _adapters, _quantized_adapters, _shorter_sequences, _more_gpus, _more_nodes,
)  # fmt: skip


def _first_that_fits(candidates: Candidates) -> str | None:
    """The first change that makes a plan fit, with that plan in parentheses."""
    for text, changed in candidates:
        with contextlib.suppress(UsageError):  # the change contradicts other options
            row = changed.fitting()
            if row is not None:
                on_gpus = bool(changed.machine.devices)
                size = f"{gib(row.gpu_bytes)} GiB each" if on_gpus else f"{gib(row.host_bytes)} GiB"
                return f"{text} ({row.name}, {size})"
    return None


def _host(request: Request, rows: tuple[MemoryOption, ...]) -> str | None:
    """The memory of a host with which an option fits on these GPUs; None if none does."""
    limits = dataclasses.replace(request.limits, host=None)
    needs = [row.host_bytes for row in rows if limits.fits(memory.Memory(row.gpu, row.host))]
    if request.limits.host is None or not needs:
        return None
    return f"hosts with {math.ceil(min(needs) / (1 - limits.headroom) / GIB)} GiB of memory"


def _card(request: Request, rows: tuple[MemoryOption, ...]) -> str | None:
    """The smallest GPU that is sold with enough memory, in words; None if the host is too small."""
    for size in CARDS:
        limits = dataclasses.replace(request.limits, gpu=size << 30)
        if any(limits.fits(memory.Memory(row.gpu, row.host)) for row in rows):
            return f"as many GPUs of {size} GB"
    limits = dataclasses.replace(request.limits, gpu=None)
    needs = [row.gpu_bytes for row in rows if limits.fits(memory.Memory(row.gpu, row.host))]
    return f"GPUs with more than {gib(min(needs))} GiB" if needs else None


def ways_out(request: Request, rows: tuple[MemoryOption, ...]) -> list[Reason]:
    """What fits in place of a plan that does not.

    Args:
        request: what was asked for.
        rows: all options, of which none fits.
    """
    found = [text for kind in _KINDS if (text := _first_that_fits(kind(request)))]
    hardware = (_host, _card) if request.machine.devices else (_host,)
    found += [text for ask in hardware if (text := ask(request, rows))]
    words = "; nothing that was tried helps: use a smaller model"
    if found:
        words = f"; any one of these would: {'; or '.join(found)}"
    reasons = [note("fit", f"nothing fits{words}")]
    if request.base.quantized and request.base.world > 1:
        reasons.append(note("fsdp", FSDP))
    return reasons
